// Reads a stream of server-sent events.

const MAX_EVENT_CHARACTERS = 1 << 24;

// Yields the data of each event. Ends when the stream does.
export async function* readEvents(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      rest += value;
      if (rest.length > MAX_EVENT_CHARACTERS)
        throw new TypeError('an event of the stream is too long');
      const lines = rest.split('\n');
      rest = lines.pop();
      for (const ended of lines) {
        const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
        if (line === '') {
          if (data.length) yield data.join('\n');
          data = [];
        } else if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        }
      }
    }
  } finally {
    // Closes the connection if the caller stops reading, so that the server stops answering.
    reader.cancel().catch(() => {});
  }
}
