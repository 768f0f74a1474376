// Words of the translation, and those of the text that they come from: the alignments of the server.

import { $, element } from "./dom.js";

const [text, marks, output] = ["text", "marks", "translation"].map($);
const origins = new WeakMap(); // of each word of the translation: the places of the words that it comes from

// Shows each word of the translation that comes from words of the original as one to point at.
export function showWords(translation, original, alignments) {
  const [places, sources] = [unitPlaces(translation), unitPlaces(original)];
  const words = new Map(); // by the place where a word begins
  for (const { sourceStart = 0, sourceEnd, targetStart = 0, targetEnd } of alignments) {
    const word = words.get(targetStart) ?? { end: places[targetEnd], from: [] };
    word.from.push([sources[sourceStart], sources[sourceEnd]]);
    words.set(targetStart, word);
  }
  const content = new DocumentFragment();
  let done = 0;
  for (const [start, word] of words) {
    const span = element("span", translation.slice(places[start], word.end));
    span.tabIndex = -1;
    span.title = word.from.map(([begin, end]) => original.slice(begin, end)).join(", ");
    origins.set(span, word.from);
    content.append(translation.slice(done, places[start]), span);
    done = word.end;
  }
  content.append(translation.slice(done));
  output.ariaLive = "off"; // it is the same text
  output.replaceChildren(content);
}

// Alignments count code points; strings of JavaScript count UTF-16 units.
export function unitPlaces(string) {
  const places = [0];
  for (const character of string) places.push(places.at(-1) + character.length);
  return places;
}

// Lights up the words that a word comes from; all others go out. Of what is no word: nothing lights up.
export function light(word) {
  mark(origins.get(word) ?? []);
}

// Shows the text once more behind its field, with what lights up; the field is as large as that.
function mark(places) {
  const content = new DocumentFragment();
  let done = 0;
  for (const [begin, end] of places.toSorted(([one], [other]) => one - other)) {
    content.append(text.value.slice(done, begin), element("mark", text.value.slice(begin, end)));
    done = end;
  }
  content.append(text.value.slice(done));
  marks.replaceChildren(content);
  const first = marks.querySelector("mark");
  const box = marks.parentElement;
  if (first && (first.offsetTop < box.scrollTop || first.offsetTop > box.scrollTop + box.clientHeight)) {
    box.scrollTop = first.offsetTop - box.clientHeight / 2;
  }
}

// Moves from word to word by the keys of the keyboard.
export function moveToWord(event) {
  const words = [...output.querySelectorAll("span")];
  const at = words.indexOf(document.activeElement);
  const last = words.length - 1;
  const places = { ArrowRight: Math.min(at + 1, last), ArrowLeft: Math.max(at - 1, 0), Home: 0, End: last };
  if (getComputedStyle(output).direction === "rtl") {
    [places.ArrowRight, places.ArrowLeft] = [places.ArrowLeft, places.ArrowRight];
  }
  if (!words.length || !(event.key in places)) return;
  event.preventDefault();
  words[places[event.key]].focus();
}
