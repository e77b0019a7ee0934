// Reads the Markdown inside of a paragraph into a tree of plain objects:
//   {type: 'text' | 'code' | 'math', text}, {type: 'break'}, {type: 'em' | 'strong' | 'del',
//   children}, {type: 'link', href, children}, {type: 'image', href, text}
// The time is proportional to the length of the text, whatever it is: the page reads an answer
// again for each piece that arrives.

const MAX_DEPTH = 40;          // Of emphasis and links in each other.
const MAX_DESTINATION = 2000;  // Characters in the parentheses of a link.
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
export const FORMULA_ENDS = {
  '\\(': '\\)',
  '\\[': '\\]',
  '$$': '$$'
};
const ENTITIES = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: '\'',
  '#39': '\'',
  nbsp: '\u00a0'
};

// What the page opens when a link is clicked: these protocols and nothing relative. Null otherwise.
export function safeUrl(text) {
  if (!/^(https?:\/\/|mailto:)/i.test(text)) return null;
  // Browsers skip line ends and tabs in an address, which could hide what it is.
  if (/[\s\u0000-\u001f\u007f]/.test(text)) return null;
  try {
    const url = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

// Runs of backticks by their length: where each begins.
function findBackticks(text) {
  const runs = new Map();
  for (const match of text.matchAll(/`+/g)) {
    const list = runs.get(match[0].length) ?? {positions: [], next: 0};
    list.positions.push(match.index);
    runs.set(match[0].length, list);
  }
  return runs;
}

// The destination at the beginning of a text: {href, length}, up to the closing parenthesis. Null
// if there is none.
function readDestination(part) {
  let i = 0;
  let href = '';
  if (part[0] === '<') {
    const close = part.indexOf('>');
    if (close < 0) return null;
    href = part.slice(1, close);
    i = close + 1;
  } else {
    let open = 0;
    for (; i < part.length && !/\s/.test(part[i]); ++i) {
      if (part[i] === '(') ++open;
      if (part[i] === ')' && open-- === 0) break;
    }
    href = part.slice(0, i);
  }
  const rest = /^(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/.exec(part.slice(i));
  return rest && {href: href.replace(/\\([!-/:-@[-`{-~])/g, '$1'), length: i + rest[0].length};
}

// The end of an address in running text: punctuation there belongs to the sentence.
function trimAddress(address) {
  let unopened = address.split(')').length - address.split('(').length;
  let end = address.length;
  for (; /[.,:;!?*_~')]/.test(address[end - 1]); --end) {
    if (address[end - 1] === ')' && unopened-- <= 0) break;
  }
  return address.slice(0, end);
}

class InlineReader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.nodes = [];
    this.openers = [];   // Delimiters that may begin emphasis: {node, mark, index in nodes}.
    this.brackets = [];  // {index in nodes, isImage, begin in text}
    this.backticks = findBackticks(text);
    // How many characters may still be looked at twice, in search of the end of an address.
    this.budget = 4 * text.length + MAX_DESTINATION;
    this.unclosed = new Set();  // Ends of formulas that the rest of the text does not have.
    this.plain = '';
  }

  // Ends the run of plain text before another node.
  flush() {
    if (this.plain) this.nodes.push({type: 'text', text: this.plain});
    this.plain = '';
  }

  // The text from here on, as far as an address may be long; empty if too much was read in vain.
  ahead(begin) {
    const part = this.budget > 0 ? this.text.slice(begin, begin + MAX_DESTINATION) : '';
    this.budget -= part.length;
    return part;
  }

  push(node) {
    this.flush();
    this.nodes.push(node);
  }

  read() {
    const special = /[\\`*_~[\]!<&\n$hH]/g;
    while (this.at < this.text.length) {
      special.lastIndex = this.at;
      const found = special.exec(this.text)?.index ?? this.text.length;
      this.plain += this.text.slice(this.at, found);
      this.at = found;
      if (found < this.text.length && !this.readSpecial(this.text[found])) {
        this.plain += this.text[this.at++];
      }
    }
    this.flush();
    return this.nodes;
  }

  // False if the character means nothing here.
  readSpecial(character) {
    switch (character) {
      case '\\':
        return this.readFormula() || this.readEscape();
      case '$':
        return this.readFormula() || this.readDollars();
      case '`':
        return this.readCode();
      case '*':
      case '_':
      case '~':
        return this.readDelimiter(character);
      case '[':
        return this.openBracket(false);
      case '!':
        return this.text[this.at + 1] === '[' && this.openBracket(true);
      case ']':
        return this.closeBracket();
      case '<':
        return this.readAngle();
      case '&':
        return this.readEntity();
      case '\n':
        return this.readLineEnd();
      default:
        return this.readAddress();
    }
  }

  // A formula in TeX stays as it is written: Markdown's marks mean something else in it.
  readFormula() {
    const close = FORMULA_ENDS[this.text.slice(this.at, this.at + 2)];
    if (!close || this.unclosed.has(close)) return false;
    const end = this.text.indexOf(close, this.at + 2);
    if (end < 0) this.unclosed.add(close);
    if (end <= this.at + 2) return false;
    return this.pushFormula(end + 2);
  }

  pushFormula(end) {
    this.push({type: 'math', text: this.text.slice(this.at, end)});
    this.at = end;
    return true;
  }

  // Dollars may also be money: a formula has no spaces inside of its marks and no digit behind
  // them. Each search ends at the next dollar, so that all of them together take the text's length.
  readDollars() {
    const length = /^\$+/.exec(this.text.slice(this.at, this.at + 100))[0].length;
    const end = length === 1 ? this.nextDollar(this.at + 1) : -1;
    if (end > 0 && !/\s/.test(this.text[this.at + 1]) && !/\s/.test(this.text[end - 1]) &&
        !/[\d$]/.test(this.text[end + 1] ?? '')) {
      return this.pushFormula(end + 1);
    }
    this.plain += this.text.slice(this.at, this.at + length);
    this.at += length;
    return true;
  }

  // Where the next dollar is that is not escaped; -1 if code or the end comes first.
  nextDollar(from) {
    const stop = /\\[^]|[$`]/g;
    stop.lastIndex = from;
    for (let found = stop.exec(this.text); found; found = stop.exec(this.text)) {
      if (found[0] === '$') return found.index;
      if (found[0] === '`') break;
    }
    return -1;
  }

  readEscape() {
    const next = this.text[this.at + 1];
    if (!next || !/[!-/:-@[-`{-~]/.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  readCode() {
    const length = /^`+/.exec(this.text.slice(this.at, this.at + 100))[0].length;
    const list = this.backticks.get(length);
    // A run of more than 100 is not found, and each character of it is text.
    if (!list) return false;
    while (list.positions[list.next] <= this.at) ++list.next;
    const close = list.positions[list.next];
    if (close === undefined) {
      this.plain += '`'.repeat(length);
      this.at += length;
      return true;
    }
    let code = this.text.slice(this.at + length, close).replaceAll('\n', ' ');
    if (/^ .* $/.test(code) && code.trim()) code = code.slice(1, -1);
    this.push({type: 'code', text: code});
    this.at = close + length;
    return true;
  }

  // CommonMark's rules for what may begin and end emphasis, and which of several marks belong
  // together.
  readDelimiter(mark) {
    let end = this.at;
    while (this.text[end] === mark) ++end;
    let count = end - this.at;
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[end] ?? ' ';
    const opens = !/\s/.test(after) &&
        (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
    const closes = !/\s/.test(before) &&
        (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
    this.at = end;
    // Long runs would put hundreds of elements into each other.
    if (count > 3 || (mark === '~' && count !== 2)) {
      this.plain += mark.repeat(count);
      return true;
    }
    const mayOpen = mark === '_' ? opens && (!closes || PUNCTUATION.test(before)) : opens;
    const mayClose = mark === '_' ? closes && (!opens || PUNCTUATION.test(after)) : closes;
    this.flush();
    if (mayClose) count = this.closeEmphasis(mark, count);
    if (count === 0) return true;
    const node = {type: 'text', text: mark.repeat(count)};
    if (mayOpen) {
      // Of many open marks, only the innermost can still become emphasis.
      if (this.openers.length === MAX_DEPTH) this.openers.shift();
      this.openers.push({node, mark, index: this.nodes.length});
    }
    this.nodes.push(node);
    return true;
  }

  // Joins what is between the openers and here. Returns how many marks are left.
  closeEmphasis(mark, count) {
    while (count > 0) {
      const which = this.openers.findLastIndex((opener) => opener.mark === mark);
      if (which < 0) return count;
      const opener = this.openers[which];
      const used = mark === '~' || (count >= 2 && opener.node.text.length >= 2) ? 2 : 1;
      const children = this.nodes.splice(opener.index + 1);
      this.openers.length = which + 1;
      this.brackets = this.brackets.filter((bracket) => bracket.index <= opener.index);
      opener.node.text = opener.node.text.slice(used);
      if (!opener.node.text) {
        this.openers.pop();
        this.nodes.pop();
      }
      this.nodes.push({type: mark === '~' ? 'del' : used === 2 ? 'strong' : 'em', children});
      count -= used;
    }
    return 0;
  }

  openBracket(isImage) {
    const mark = isImage ? '![' : '[';
    this.push({type: 'text', text: mark});
    this.at += mark.length;
    // Of many open brackets, only the innermost can still become links.
    if (this.brackets.length === MAX_DEPTH) this.brackets.shift();
    this.brackets.push({index: this.nodes.length - 1, isImage, begin: this.at});
    return true;
  }

  closeBracket() {
    const bracket = this.brackets.pop();
    if (!bracket || this.text[this.at + 1] !== '(') return false;
    const destination = readDestination(this.ahead(this.at + 2));
    const href = destination && safeUrl(destination.href);
    if (!href) return false;
    this.flush();
    const children = this.nodes.splice(bracket.index).slice(1);
    this.openers = this.openers.filter((opener) => opener.index < bracket.index);
    if (bracket.isImage) {
      this.nodes.push({type: 'image', href, text: this.text.slice(bracket.begin, this.at)});
    } else {
      this.nodes.push({type: 'link', href, children});
      this.brackets = this.brackets.filter((outer) => outer.isImage);  // No link inside of a link.
    }
    this.at += 2 + destination.length;
    return true;
  }

  // <https://address>, <name@host> and <br>. All other tags are text.
  readAngle() {
    const part = this.text.slice(this.at, this.at + MAX_DESTINATION);
    const lineBreak = /^<br\s*\/?>/i.exec(part);
    if (lineBreak) {
      this.push({type: 'break'});
      this.at += lineBreak[0].length;
      return true;
    }
    const address = /^<((?:https?:\/\/|mailto:)[^\s<>]+|[\w.+-]+@[\w.-]+)>/i.exec(part);
    if (!address) return false;
    const href = safeUrl(address[1]) ?? safeUrl(`mailto:${address[1]}`);
    if (!href) return false;
    this.push({type: 'link', href, children: [{type: 'text', text: address[1]}]});
    this.at += address[0].length;
    return true;
  }

  readEntity() {
    const name = /^&(#39|[a-z]{2,4});/.exec(this.text.slice(this.at, this.at + 7));
    const character = name && Object.hasOwn(ENTITIES, name[1]) && ENTITIES[name[1]];
    if (!character) return false;
    this.plain += character;
    this.at += name[0].length;
    return true;
  }

  // A single line end stays one, as models mean it, for example in a poem.
  readLineEnd() {
    this.plain = this.plain.trimEnd();
    this.push({type: 'break'});
    this.at += 1;
    while (this.text[this.at] === ' ') ++this.at;
    return true;
  }

  readAddress() {
    if (/[\p{L}\p{N}]/u.test(this.text[this.at - 1] ?? ' ')) return false;
    if (!/^https?:/i.test(this.text.slice(this.at, this.at + 6))) return false;
    const part = this.ahead(this.at);
    const found = /^https?:\/\/[^\s<>"`\]]+/i.exec(part);
    if (!found) return false;
    const address = trimAddress(found[0]);
    const href = safeUrl(address);
    if (!href) return false;
    this.push({type: 'link', href, children: [{type: 'text', text: address}]});
    this.at += address.length;
    return true;
  }
}

export function readInline(text) {
  return new InlineReader(text).read();
}
