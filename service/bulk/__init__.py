"""Files of texts, translated row by row into other files, each row exactly once; knows no engine and no client."""
