// Tells comments, texts, numbers and keywords of programs apart, so that they can have colors.
//
// A token depends only on the text behind it and a few characters more, so that of a text that
// grows only the last tokens need be read again. No expression below goes back over what it has
// read, so that the time is proportional to the length of any text.

// A token that has more tokens than these behind it stays as it is when the text grows.
export const UNSETTLED_TOKENS = 12;

const set = (words) => new Set(words.split(' '));

const C_WORDS = set(
    'abstract as async await auto bool boolean break byte case catch char class const constexpr ' +
    'continue crate default defer delete do double else enum export extends extern false final ' +
    'finally float fn for func function go if impl implements import in inline instanceof int ' +
    'interface internal is let long loop match mod move mut namespace new nil null nullptr ' +
    'object of operator override package private protected pub public ref return select self ' +
    'short signed sizeof static struct super switch template this throw trait true try type ' +
    'typedef typename typeof undefined union unsafe unsigned use using val var virtual void ' +
    'volatile when where while yield');
const SCRIPT_WORDS = set(
    'and as assert async await begin break case class continue def del do done echo elif else ' +
    'elsif end ensure esac except exit export false False fi finally for from function global if ' +
    'import in is lambda local match module nil None nonlocal not null or pass raise require ' +
    'rescue return self set source super then true True try undef unless unset until when while ' +
    'with yield');
// Lua has the same comments, so that its words are here, too.
const SQL_WORDS = set(
    'add all alter and as asc between by case column commit constraint create cross database ' +
    'default delete desc distinct drop else end exists foreign from full function group having ' +
    'if in index inner insert into is join key left like limit local nil not null offset on or ' +
    'order outer primary references repeat return right rollback select set table then ' +
    'transaction union unique until update values view when where while with');
const DATA_WORDS = set('false no null true yes');

// Sources of expressions.
const TEXTS = String.raw`"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?`;
const LONG_TEXTS =
    String.raw`"""(?:\\[^]|(?!""")[^\\])*(?:""")?|'''(?:\\[^]|(?!''')[^\\])*(?:''')?`;
// An apostrophe alone is a part of a name in Rust.
const RUST_TEXTS = String.raw`"(?:\\[^]|[^"\\])*"?|'(?:\\[^'\n]{1,8}|[^'\\\n])'`;
const BACKTICKS = '`(?:\\\\[^]|[^`\\\\])*`?';
const LONG_COMMENTS = String.raw`\/\*(?:(?!\*\/)[^])*(?:\*\/)?`;
const C_COMMENTS = String.raw`\/\/[^\n]*|${LONG_COMMENTS}`;
const HASH_COMMENTS = String.raw`#[^\n]*`;
const NUMBERS = String.raw`\d(?:[\w.]|'(?=\d))*`;
const WORDS = String.raw`[\p{L}_$][\p{L}\p{N}_$]*`;
// Up to where something else may begin, but at least one character.
const OTHERS = '[^\\p{L}\\p{N}_$"\'`/#-]+|[^]';

// `words` says of a word whether it is a keyword.
function grammar(comments, texts, words, isCaseless = false) {
  return {
    token: new RegExp(`(${comments})|(${texts})|(${NUMBERS})|(${WORDS})|${OTHERS}`, 'uy'),
    isKeyword: (word) => words.has(isCaseless ? word.toLowerCase() : word)
  };
}

const C = grammar(C_COMMENTS, `${BACKTICKS}|${TEXTS}`, C_WORDS);
const RUST = grammar(C_COMMENTS, RUST_TEXTS, C_WORDS);
const SCRIPT = grammar(HASH_COMMENTS, `${LONG_TEXTS}|${TEXTS}`, SCRIPT_WORDS);
const SQL = grammar(`--[^\\n]*|${LONG_COMMENTS}`, TEXTS, SQL_WORDS, true);
const DATA = grammar(HASH_COMMENTS, TEXTS, DATA_WORDS);
const STYLE = grammar(LONG_COMMENTS, TEXTS, DATA_WORDS);
// The word of a tag comes with its bracket.
const MARKUP = {
  token: /(<!--(?:(?!-->)[^])*(?:-->)?)|("[^"<]*"?)|(&#?\w+;?)|(<[/!?]?[\w:-]*)|[^<"&]+|[^]/uy,
  isKeyword: () => true
};

const LANGUAGES = new Map([
  [
    C,
    'c cc cpp c++ h hpp cs csharp c# dart go golang java javascript js json5 jsx kotlin kt mjs ' +
        'php proto scala swift ts tsx typescript zig'
  ],
  [RUST, 'rs rust'],
  [
    SCRIPT,
    'bash cmake console dockerfile fish julia make makefile nim perl powershell ps1 py python ' +
        'python3 r rb ruby sh shell zsh'
  ],
  [SQL, 'lua mysql plsql postgresql sql sqlite'],
  [DATA, 'conf ini json properties toml yaml yml'],
  [STYLE, 'css less scss'],
  [MARKUP, 'html svg vue xml'],
].flatMap(([language, names]) => names.split(' ').map((name) => [name, language])));

const KINDS = ['comment', 'text', 'number', 'word'];

// Yields the tokens from `at` on, as {begin, text, kind}. Of what has no color, `kind` is ''.
export function* readTokens(languageName, text, at = 0) {
  const language = LANGUAGES.get(languageName.toLowerCase());
  if (!language) {
    if (at < text.length) yield {begin: at, text: text.slice(at), kind: ''};
    return;
  }
  const {token, isKeyword} = language;
  for (let begin = at; begin < text.length;) {
    token.lastIndex = begin;
    const [found, ...groups] = token.exec(text);
    const kind = KINDS[groups.findIndex((group) => group !== undefined)] ?? '';
    yield {begin, text: found, kind: kind === 'word' && !isKeyword(found) ? '' : kind};
    begin += found.length;
  }
}
