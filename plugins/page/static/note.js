// The line below the translation.

import { $ } from "./dom.js";

const BRIEF_MS = 2000;

let note = ""; // that belongs to the translation
let timer = 0; // of what stands in its place

export function say(message) {
  clearTimeout(timer);
  note = message;
  $("note").textContent = message;
}

// Says something for a moment; then the note is there again.
export function sayBriefly(message) {
  clearTimeout(timer);
  $("note").textContent = message;
  timer = setTimeout(() => say(note), BRIEF_MS);
}
