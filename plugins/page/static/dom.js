// Elements of the page. What is put into them is text, never HTML.

export const $ = (id) => document.getElementById(id);

export function element(name, content) {
  const made = document.createElement(name);
  made.append(content);
  return made;
}
