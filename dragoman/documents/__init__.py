"""Documents: read the texts of a file, write the file with translations. The formats know no command or server."""
