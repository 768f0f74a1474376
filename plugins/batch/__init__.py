"""BatchTranslateText: the caller sends texts for as long as it likes; each is answered once it is translated."""
