// The languages and the text in the address of the page. A text that is too long for it is kept in the tab.

const LONGEST = 2000; // UTF-16 units of text
const LONG_TEXT = "dragoman-text"; // in the storage of this tab, which ends with it

export function write(source, target, text) {
  const isLong = text.length > LONGEST;
  history.replaceState(null, "", `#${source}/${target}/${isLong ? "" : encodeURIComponent(text.toWellFormed())}`);
  sessionStorage.removeItem(LONG_TEXT);
  try {
    if (isLong) sessionStorage.setItem(LONG_TEXT, text);
  } catch {
    // It is larger than what a browser keeps.
  }
}

export function read() {
  const [source, target, ...rest] = location.hash.slice(1).split("/");
  return { source, target, text: decoded(rest.join("/")) };
}

export const longText = () => sessionStorage.getItem(LONG_TEXT) ?? "";

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // the address was cut in the middle of a character
  }
}
