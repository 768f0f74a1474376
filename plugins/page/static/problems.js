// What goes wrong: the line that says so, the key that is asked for, and the server that comes back.

import { Refusal, hasKey, isRunning, keepKey } from "./api.js";
import { $ } from "./dom.js";

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
  hide();
  retry = again;
  if (error.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
    if (!hasKey()) return;
  }
  show(error);
  if (!error.isAway || isLeft) return;
  $("error-text").textContent += " This page goes on by itself once it does.";
  isAway = true;
  lookLater();
}

function show(error) {
  const { message, retryAfterS: seconds } = error;
  const isBusy = seconds && !error.isAway;
  $("error").hidden = false;
  $("again").hidden = !error.mayHelpToRetry;
  $("error-text").textContent = isBusy ? `${message} Try again in ${seconds} second${seconds === 1 ? "" : "s"}.` : message;
  const over = () => ($("error-text").textContent = "You can try again now.");
  if (isBusy) timer = setTimeout(over, seconds * 1000);
}

// Hides the line where something else is tried; that the server is away is said until it answers.
export function hideOld() {
  if (!isAway) hide();
}

export function hide() {
  clearTimeout(timer);
  isAway = false;
  $("error").hidden = true;
  $("error-text").textContent = "";
}

// The server has answered.
export function succeed() {
  hide();
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
  if (!isBack) {
    lookLater();
    return;
  }
  hide();
  retry();
}

function useKey(event) {
  event.preventDefault();
  keepKey($("key").value);
  $("key").value = "";
  $("key-form").hidden = true;
  $("text").focus();
  retry();
}

$("again").addEventListener("click", () => retry());
$("key-form").addEventListener("submit", useKey);
addEventListener("online", look);
document.addEventListener("visibilitychange", () => document.hidden || look());
