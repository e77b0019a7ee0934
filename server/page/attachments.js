// Text files that a message takes along.
//
// In the request, each file is a fenced block below its name, in front of what the person wrote.
import {formatBytes} from './bytes.js';

// All files of a message; the server refuses requests of more than 1 MiB, in which some characters
// take more bytes than here.
export const MAX_BYTES = 512 * 1024;

const LANGUAGE = /\.(\w{1,10})$/;

export const sizeOf = (text) => new TextEncoder().encode(text).length;

// The text of a file. Throws an Error with a sentence if it is none.
export async function readTextFile(file, usedBytes) {
  const left = MAX_BYTES - usedBytes;
  if (file.size > left) {
    throw new Error(
        `“${file.name}” is too large: it has ${formatBytes(file.size)}, and ` +
        (usedBytes ? `beside the other files ${formatBytes(left)} are left.` :
                     `a message takes files of at most ${formatBytes(MAX_BYTES)}.`));
  }
  let text;
  try {
    text = new TextDecoder('utf-8', {fatal: true}).decode(await file.arrayBuffer());
  } catch {
    throw new Error(
        `“${file.name}” cannot be attached: it is not text in UTF-8, or it cannot be read.`);
  }
  if (text.includes('\0')) throw new Error(`“${file.name}” cannot be attached: it is not text.`);
  if (!text.trim()) throw new Error(`“${file.name}” cannot be attached: it has no text.`);
  return text.replace(/\r\n?/g, '\n');
}

// Why a file with so many tokens cannot be sent, as a sentence; empty if it can. `taken` are the
// tokens of the conversation and of the other files.
export function tooLong(name, tokens, taken, context) {
  if (!context || tokens + taken < context) return '';
  const [has, size, left] =
      [tokens, context, Math.max(0, context - taken)].map((count) => count.toLocaleString('en'));
  if (tokens >= context) {
    return `“${name}” is too long: it has ${has} tokens, and the context has ${size}. ` +
        'Attach a part of it.';
  }
  return `“${name}” is too long here: it has ${has} tokens, and ${left} of ${size} are left. ` +
      'Begin a new conversation, or attach a part of it.';
}

// The file as a block of Markdown, whose fence is longer than any within.
export function fencedFile({name, text}) {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`{3,}/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const language = LANGUAGE.exec(name)?.[1].toLowerCase() ?? '';
  return `${name}:\n${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`;
}

// A message's text as the model reads it.
export function joinFiles({content, files = []}) {
  return [...files.map(fencedFile), content].filter(Boolean).join('\n\n');
}
