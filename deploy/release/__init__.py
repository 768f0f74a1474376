"""`make release`: builds from a tag all that would be published, and publishes nothing."""
