// Files of plain text.

import { Refusal } from "./api.js";

// Gives the text of a file: UTF-8, or UTF-16 with a byte order mark.
export async function textOf(file) {
  const content = await file.arrayBuffer();
  const text = decoded(content);
  if (text === null) throw new Refusal(`${file.name} cannot be read as text. Save it as UTF-8 and open it again.`);
  if (!text.trim()) throw new Refusal(`${file.name} is empty.`);
  return text;
}

function decoded(content) {
  const [first, second] = new Uint8Array(content);
  const isBig = first === 0xfe && second === 0xff;
  const isLittle = first === 0xff && second === 0xfe;
  try {
    return new TextDecoder(isBig ? "utf-16be" : isLittle ? "utf-16le" : "utf-8", { fatal: true }).decode(content);
  } catch {
    return null;
  }
}
