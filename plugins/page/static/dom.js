// Elements of the page. What is put into them is text, never HTML.

export const $ = (id) => document.getElementById(id);

export function element(name, content) {
  const made = document.createElement(name);
  made.append(content);
  return made;
}

// Moves the focus out of a part of the page that goes away; it would fall to the top of the page.
export function leave(part, next) {
  if (part.contains(document.activeElement)) next.focus();
}
