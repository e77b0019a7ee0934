// Reads Markdown into blocks, which are plain objects:
//   {type: 'paragraph', text}, {type: 'heading', level, text}, {type: 'rule'},
//   {type: 'code', language, text}, {type: 'math', text}, {type: 'quote', blocks},
//   {type: 'list', ordered, start, items: [{task, blocks}]}, {type: 'table', alignments, rows:
//   [[text…]…]}
// `text` is for readInline. A fence without an end is code up to the end of the text, so that code
// looks right while it arrives.

import {FORMULA_ENDS} from './inline.js';

const MAX_DEPTH = 16;     // Of quotes and lists in each other; deeper ones are paragraphs.
const MAX_COLUMNS = 100;  // Of a table.
const MAX_FORMULA_LINES = 100;

const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})\s*([^\s`]*)/;
const HEADING = /^ {0,3}(#{1,6})(?=\s|$)/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|(\d{1,9})[.)])(\s+|$)/;
const DELIMITER_ROW = /^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/;

// A formula that begins a line.
const FORMULA = /^ {0,3}(\\\[|\$\$)/;

const isBlank = (line) => !/\S/.test(line);
const indentOf = (line) => line.length - line.trimStart().length;

function readCells(line) {
  const cells = [];
  let cell = '';
  let inCode = false;
  const row = line.trim().replace(/^\|/, '');
  for (let i = 0; i < row.length; ++i) {
    if (row[i] === '\\' && row[i + 1] === '|') {
      cell += '|';
      ++i;
    } else if (row[i] === '|' && !inCode && cells.length < MAX_COLUMNS) {
      cells.push(cell.trim());
      cell = '';
    } else {
      if (row[i] === '`') inCode = !inCode;
      cell += row[i];
    }
  }
  if (cell.trim()) cells.push(cell.trim());
  return cells;
}

const beginsTable = (lines, at) => lines[at].includes('|') && at + 1 < lines.length &&
    lines[at + 1].includes('-') && lines[at + 1].length < 2000 &&
    DELIMITER_ROW.test(lines[at + 1].trim()) &&
    readCells(lines[at]).length === readCells(lines[at + 1]).length;

function beginsOther(lines, at, depth) {
  const line = lines[at];
  const item = ITEM.exec(line);
  return FENCE.test(line) || endOfFormula(lines, at) || HEADING.test(line) || RULE.test(line) ||
      (depth < MAX_DEPTH && QUOTE.test(line)) || beginsTable(lines, at) ||
      // In a paragraph, a number other than 1 is more likely a year or a sum.
      (depth < MAX_DEPTH && item && item[4] && (item[3] ?? '1') === '1');
}

function readFence(lines, at, found) {
  const [, indent, fence, language] = found;
  const close = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}\\s*$`);
  const code = [];
  let i = at + 1;
  for (; i < lines.length && !close.test(lines[i]); ++i) {
    code.push(lines[i].slice(Math.min(indent.length, indentOf(lines[i]))));
  }
  return [{type: 'code', language, text: code.join('\n')}, Math.min(i + 1, lines.length)];
}

// The line behind the formula that begins on this line; 0 if none does. It has no blank lines; at
// the end of the text it may still grow. With words behind it, it is a part of the paragraph.
function endOfFormula(lines, at) {
  const found = FORMULA.exec(lines[at]);
  if (!found) return 0;
  const close = FORMULA_ENDS[found[1]];
  for (let i = at; i < at + MAX_FORMULA_LINES && !isBlank(lines[i] ?? ''); ++i) {
    const end = lines[i].indexOf(close, i === at ? found[0].length : 0);
    if (end >= 0) return /^\s*[.,;]?\s*$/.test(lines[i].slice(end + close.length)) ? i + 1 : 0;
    if (i + 1 === lines.length) return i + 1;
  }
  return 0;
}

function readQuote(lines, at, depth) {
  const inner = [];
  let i = at;
  for (; i < lines.length && QUOTE.test(lines[i]); ++i) inner.push(lines[i].replace(QUOTE, ''));
  return [{type: 'quote', blocks: readLines(inner, depth + 1)}, i];
}

// The lines of one item, without their indentation, and where the next begins.
function readItem(lines, at, found) {
  const width = found[0].length - (found[4].length > 4 ? found[4].length - 1 : 0);
  const inner = [lines[at].slice(width)];
  let fence = FENCE.exec(inner[0]);
  let i = at + 1;
  for (; i < lines.length; ++i) {
    const line = lines[i];
    const isInside = indentOf(line) >= Math.min(width, indentOf(lines[at]) + 2);
    if (isBlank(line)) {
      const next = lines.slice(i, i + 3).find((later) => !isBlank(later));
      if (next === undefined || indentOf(next) < Math.min(width, indentOf(lines[at]) + 2)) break;
    } else if (
        !isInside &&
        (fence || ITEM.test(line) || beginsOther(lines, i, 0) || isBlank(lines[i - 1]))) {
      break;
    }
    const text = line.slice(Math.min(width, indentOf(line)));
    if (fence && new RegExp(`^ {0,3}${fence[2][0]}{${fence[2].length},}\\s*$`).test(text)) {
      fence = null;
    } else {
      fence ??= FENCE.exec(text);
    }
    inner.push(text);
  }
  return [inner, i];
}

function readList(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const kind = first[2].at(-1);
  const list =
      {type: 'list', ordered: first[3] !== undefined, start: Number(first[3] ?? 1), items: []};
  let i = at;
  while (i < lines.length) {
    const found = ITEM.exec(lines[i]);
    if (!found || found[2].at(-1) !== kind || RULE.test(lines[i]) ||
        Math.abs(found[1].length - indent) > 1) {
      break;
    }
    const [inner, end] = readItem(lines, i, found);
    const task = /^\[([ xX])\]\s+/.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(task[0].length);
    list.items.push({
      task: task && task[1] !== ' ' ? 'done' :
          task                      ? 'open' :
                                      '',
      blocks: readLines(inner, depth + 1)
    });
    i = end;
    // Items may have empty lines between them.
    let next = i;
    while (next < lines.length && isBlank(lines[next])) ++next;
    if (next < lines.length && ITEM.test(lines[next])) i = next;
  }
  return [list, i];
}

function readTable(lines, at) {
  const alignments =
      readCells(lines[at + 1])
          .map((cell) => cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : 'left');
  const rows = [readCells(lines[at])];
  let i = at + 2;
  for (; i < lines.length && lines[i].includes('|') && !FENCE.test(lines[i]); ++i) {
    const cells = readCells(lines[i]);
    rows.push(alignments.map((_, column) => cells[column] ?? ''));
  }
  return [{type: 'table', alignments, rows}, i];
}

function readParagraph(lines, at, depth) {
  let i = at + 1;
  while (i < lines.length && !isBlank(lines[i]) && !beginsOther(lines, i, depth)) ++i;
  return [{type: 'paragraph', text: lines.slice(at, i).join('\n').trim()}, i];
}

// The block that begins at a line that is not blank, and the line behind it.
function readBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return readFence(lines, at, fence);
  const formulaEnd = endOfFormula(lines, at);
  if (formulaEnd) {
    return [{type: 'math', text: lines.slice(at, formulaEnd).join('\n').trim()}, formulaEnd];
  }
  const heading = HEADING.exec(line);
  if (heading) {
    const text = line.slice(heading[0].length).trim().replace(/(?:^|(?<=\s))#+$/, '').trim();
    return [{type: 'heading', level: heading[1].length, text}, at + 1];
  }
  if (RULE.test(line)) return [{type: 'rule'}, at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return readQuote(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return readList(lines, at, depth);
  if (beginsTable(lines, at)) return readTable(lines, at);
  return readParagraph(lines, at, depth);
}

// Each block has `source`: its lines, by which a changed block is told from one that stayed.
function readLines(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      ++at;
      continue;
    }
    const [block, end] = readBlock(lines, at, depth);
    if (depth === 0) block.source = lines.slice(at, end).join('\n');
    blocks.push(block);
    at = end;
  }
  return blocks;
}

export function readBlocks(text) {
  return readLines(text.replace(/\r\n?/g, '\n').replaceAll('\t', '    ').split('\n'), 0);
}
