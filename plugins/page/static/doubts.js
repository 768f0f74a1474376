// Sentences of the translation that may be wrong, by the quality estimates of the server.

import { $, element } from "./dom.js";
import { unitPlaces } from "./words.js";

const DOUBTFUL = 0.5; // a sentence below it is more probably bad than good
const MOST_NAMED = 3; // sentences in a note
const CUT_OFF = {
  FINISH_REASON_LENGTH: "The translation was cut off: it became too long.",
  FINISH_REASON_REPETITION: "The translation was cut off: it repeated itself.",
};
const output = $("translation");

let translation = ""; // the estimates are of it
let doubts = []; // the places of its doubtful sentences
let words = ""; // what is to be said of it; "": nothing

// Takes the estimates of a translation.
export function judge({ translatedText, segmentQualities = [], finishReason }) {
  const places = unitPlaces(translatedText);
  const isDoubtful = (at) => (segmentQualities[at].qualityEstimate ?? 0) < DOUBTFUL;
  const doubtful = [...segmentQualities.keys()].filter(isDoubtful);
  translation = translatedText;
  doubts = doubtful.map((at) => [places[segmentQualities[at].targetStart ?? 0], places[segmentQualities[at].targetEnd]]);
  words = CUT_OFF[finishReason] ?? wordsOf(doubtful, segmentQualities.length);
}

function wordsOf(doubtful, count) {
  if (!doubtful.length) return "";
  if (count === 1) return "This translation may be wrong.";
  const { length } = doubtful;
  if (length > MOST_NAMED) return `${length} of ${count} sentences may be wrong: they are underlined.`;
  const named = new Intl.ListFormat("en").format(doubtful.map((at) => String(at + 1)));
  return `${length === 1 ? "Sentence" : "Sentences"} ${named} of ${count} may be wrong.`;
}

// Marks the doubtful sentences, where the translation that is shown is that of the estimates; gives what is to be said.
export function markDoubts() {
  if (output.textContent !== translation) return "";
  for (const [start, end] of doubts) {
    const range = document.createRange();
    range.setStart(...placeOf(start, true));
    range.setEnd(...placeOf(end, false));
    const doubt = element("mark", "");
    doubt.title = "This part may be wrong";
    doubt.append(range.extractContents());
    range.insertNode(doubt);
  }
  return words;
}

// The node of text that holds a place of the translation, and the place in it; a word is never taken apart.
function placeOf(place, isStart) {
  const texts = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
  let before = 0;
  while (texts.nextNode()) {
    const { currentNode: node } = texts;
    const after = before + node.length;
    if (isStart ? place < after : place <= after) {
      const word = node.parentElement === output ? null : node.parentElement;
      if (!word) return [node, place - before];
      const index = [...word.parentNode.childNodes].indexOf(word);
      return [word.parentNode, isStart ? index : index + 1];
    }
    before = after;
  }
  return [output, output.childNodes.length];
}
