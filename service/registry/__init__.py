"""The models that are served: found, loaded, checked, replaced, watched."""
