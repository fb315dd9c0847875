vim9script
# Reports errors and warnings: those of `:make` and `:lmake`, and those that ALE shows. Vim itself has no others.

import './bridge.vim'
import './names.vim'
import './text.vim'

# Of one file, the most severe ones; the companion has the same limit.
const MAX_DIAGNOSTICS = 200
const SEVERITIES = {E: 'error', W: 'warning', I: 'information', N: 'hint'}
const RANKS = {error: 0, warning: 1, information: 2, hint: 3}

# What the last `:make` has found.
var made: list<dict<any>> = []
# By path: what was sent.
var reported: dict<list<dict<any>>> = {}

export def Start()
  reported = {}
  Report()
enddef

# After a command that has filled the quickfix list or the location list. Others, such as `:grep`, fill them with something else.
export def OnMake(command: string)
  made = command =~ '^l' ? getloclist(0) : getqflist()
  Report()
enddef

# Sends what has changed.
export def Report()
  var now: dict<list<dict<any>>> = mapnew(reported, (_, _) => [])
  for [path, found] in items(ByFile())
    now[path] = sort(found, (one, other) => RANKS[one.severity] - RANKS[other.severity])[: MAX_DIAGNOSTICS - 1]
  endfor
  for [path, diagnostics] in items(now)
    if diagnostics != get(reported, path, [])
      bridge.Notify('context/diagnostics', {path: path, diagnostics: diagnostics})
    endif
  endfor
  reported = filter(now, (_, diagnostics) => !empty(diagnostics))
enddef

def ByFile(): dict<list<dict<any>>>
  var all: dict<list<dict<any>>> = {}
  for item in made + OfAle()
    const path = get(item, 'valid', 1) && bufexists(item.bufnr) ? names.Path(item.bufnr) : ''
    if path != '' && item.text !~ '^\s*$'
      all[path] = add(get(all, path, []), Diagnostic(item))
    endif
  endfor
  return all
enddef

def OfAle(): list<dict<any>>
  var all: list<dict<any>> = []
  if exists('*ale#engine#GetLoclist')
    for info in getbufinfo({buflisted: 1, bufloaded: 1})
      for item in call('ale#engine#GetLoclist', [info.bufnr])
        add(all, extend({bufnr: info.bufnr}, item))
      endfor
    endfor
  endif
  return all
enddef

def Diagnostic(item: dict<any>): dict<any>
  const column = get(item, 'vcol', 0) ? 0 : get(item, 'col', 0)
  const start = Position(item.bufnr, item.lnum, max([column, 1]) - 1)
  # `end_col` is the last column.
  const end_column = get(item, 'end_col', 0)
  const last = max([get(item, 'end_lnum', 0), item.lnum])
  var diagnostic: dict<any> = {
    start: start,
    end: end_column > 0 ? Position(item.bufnr, last, end_column) : start,
    severity: get(SEVERITIES, toupper(get(item, 'type', 'E')), 'error'),
    message: trim(item.text),
  }
  for [name, key] in [['source', 'linter_name'], ['code', 'code']]
    if get(item, key, '') != ''
      diagnostic[name] = item[key]
    endif
  endfor
  return diagnostic
enddef

# The position after this many bytes of a line. A line of a buffer that is not loaded is not known.
def Position(buffer: number, line: number, bytes: number): dict<number>
  const lines = getbufline(buffer, line)
  const character = empty(lines) ? bytes : text.Utf16Length(strpart(lines[0], 0, bytes))
  return {line: max([line, 1]), character: character + 1}
enddef
