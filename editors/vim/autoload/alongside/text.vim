vim9script
# Converts between the text of a file and a Vim buffer. What is not touched survives byte for byte.

const BOM = "\<Char-0xfeff>"
const ENDINGS = {unix: "\n", dos: "\r\n", mac: "\r"}

# The text that saving the buffer would write.
export def Of(buffer: number): string
  const ending = ENDINGS[getbufvar(buffer, '&fileformat')]
  const text = join(getbufline(buffer, 1, '$'), ending)
  return (getbufvar(buffer, '&bomb') ? BOM : '') .. text .. (getbufvar(buffer, '&endofline') ? ending : '')
enddef

# About how many bytes Of() returns, without building the text where that can be avoided.
export def Size(buffer: number): number
  return buffer == bufnr() ? line2byte(line('$') + 1) : len(Of(buffer))
enddef

export def Put(buffer: number, text: string)
  var rest = text
  const bomb = strcharpart(rest, 0, 1) ==# BOM
  if bomb
    rest = strcharpart(rest, 1)
  endif
  # Only if every line ends in CRLF; otherwise carriage returns stay visible.
  const breaks = count(rest, "\n")
  const is_dos = breaks > 0 && count(rest, "\r\n") == breaks
  if is_dos
    rest = substitute(rest, "\r\n", "\n", 'g')
  endif
  var lines = split(rest, "\n", true)
  const ends = rest[-1 : ] == "\n"
  if ends
    remove(lines, -1)
  endif
  # In this order the cursor stays on its line.
  setbufline(buffer, 1, lines)
  silent deletebufline(buffer, len(lines) + 1, '$')
  setbufvar(buffer, '&fileformat', is_dos ? 'dos' : 'unix')
  setbufvar(buffer, '&bomb', bomb)
  setbufvar(buffer, '&endofline', ends)
  setbufvar(buffer, '&modified', false)
enddef

# The lines of a text without line endings.
export def Lines(text: string): list<string>
  return text == '' ? [] : split(substitute(substitute(text, BOM, '', ''), "\r\\?\n$", '', ''), "\r\\?\n", true)
enddef

# The text without byte order mark, carriage returns and final newlines: what can be seen of it.
export def Visible(text: string): string
  return trim(substitute(substitute(text, BOM, '', ''), "\r\n", "\n", 'g'), "\n", 2)
enddef

export def Utf16Length(text: string): number
  return reduce(str2list(text), (sum, char) => sum + (char > 0xffff ? 2 : 1), 0)
enddef

# At most this many bytes of the text, cut between characters.
export def Truncate(text: string, bytes: number): string
  return len(text) <= bytes ? text : strcharpart(text, 0, charidx(text, bytes, true))
enddef
