"""What replicas cost, and how calls are spread over them: one and two measured, up to a thousand simulated."""
