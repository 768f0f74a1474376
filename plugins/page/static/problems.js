// What goes wrong: the line that says so, the key that is asked for, and the server that comes back.

import { Refusal, hasKey, isRunning, keepKey } from "./api.js";
import { $, leave } from "./dom.js";

const FIRST_LOOK_MS = 1000; // for a server that does not answer
const LAST_LOOK_MS = 15_000;

let retry = () => {}; // what was refused
let timer = 0; // of the line, or of the next look
let lookMs = FIRST_LOOK_MS;
let isAway = false; // whether the server is looked for

// Says what went wrong. Where the server is away, it is looked for, and what was refused is tried again once it is back;
// unless that is left to the visitor.
export function fail(error, again, { isLeft = false } = {}) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refusal)) throw error;
  clearTimeout(timer);
  retry = again;
  isAway = error.isAway && !isLeft;
  if (error.status === 401) askForKey();
  if (error.status === 401 && !hasKey()) hide();
  else show(error);
  if (isAway) lookLater();
}

function askForKey() {
  $("key-form").hidden = false;
  // What somebody types while a key ends does not get into the field of the key.
  if (!hasKey() || document.activeElement !== $("text")) $("key").focus();
}

function show(error) {
  const { message, retryAfterS: seconds } = error;
  const isBusy = seconds && !error.isAway;
  $("error").hidden = false;
  if (!error.mayHelpToRetry) leave($("again"), $("text"));
  $("again").hidden = !error.mayHelpToRetry;
  if (isAway) write(`${message} This page tries again by itself.`);
  else write(isBusy ? `${message} Try again in ${seconds} second${seconds === 1 ? "" : "s"}.` : message);
  if (isBusy) timer = setTimeout(() => write("You can try again now."), seconds * 1000);
}

// Words that are written once more are read aloud once more.
function write(words) {
  if ($("error-text").textContent !== words) $("error-text").textContent = words;
}

// Hides the line where something else is tried; that the server is away is said until it answers.
export function hideOld() {
  if (!isAway) hide();
}

export function hide() {
  clearTimeout(timer);
  isAway = false;
  leave($("error"), $("text"));
  $("error").hidden = true;
  write("");
}

// The server has answered.
export function succeed() {
  hide();
  leave($("key-form"), $("text"));
  $("key-form").hidden = true;
  lookMs = FIRST_LOOK_MS;
}

function lookLater() {
  clearTimeout(timer);
  timer = setTimeout(look, lookMs);
  lookMs = Math.min(2 * lookMs, LAST_LOOK_MS);
}

async function look() {
  if (!isAway) return;
  const isBack = await isRunning();
  if (!isAway) return;
  if (isBack) retry();
  else lookLater();
}

function useKey(event) {
  event.preventDefault();
  keepKey($("key").value);
  $("key").value = "";
  retry();
}

$("again").addEventListener("click", () => retry());
$("key-form").addEventListener("submit", useKey);
addEventListener("online", look);
document.addEventListener("visibilitychange", () => document.hidden || look());
