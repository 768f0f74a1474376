"""BatchTranslateText: texts that come for as long as the caller likes, each answered once it is translated."""
