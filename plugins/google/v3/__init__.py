"""The messages of the part of Google's Cloud Translation API v3 that the server answers: made by proto/generate.sh."""
