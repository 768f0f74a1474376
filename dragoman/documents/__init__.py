"""Documents: the texts of a file, and the file again with their translations; formats know no command and no server."""
