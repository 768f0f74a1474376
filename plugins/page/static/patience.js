// Calls that a busy server refuses are made again after a while. It may be busy with what this page has just given up:
// it hears of that late.

import { Refusal } from "./api.js";

const PAUSES_MS = [250, 500, 1000, 2000, 4000]; // then the visitor is told

// Gives what a call gives, which is made again after pauses that grow as long as the server is busy.
export async function patiently(call, signal) {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Refusal && error.isBusy)) throw error;
    }
    await pause(pauseMs, signal);
  }
  return call();
}

function pause(lengthMs, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, lengthMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
