vim9script
# The companion as a job of Vim: one JSON-RPC message a line, see docs/PROTOCOL.md. What agents are told, and a diff split
# for what they propose.

const BOM = "\<Char-0xfeff>"
const ENDINGS = {unix: "\n", dos: "\r\n", mac: "\r"}
const MOST_RESTARTS = 5
const ROOT = expand('<sfile>:p:h:h')

var job: job
var arguments: list<string>
var running = false
var pending: dict<func> = {}
var last_id = 0
var restarts: list<number> = []
var reviews: dict<dict<any>> = {}
# The review in the split: id, buffer, file (the buffer with the base), base, over.
var view: dict<any> = {}
var unsaved: dict<string> = {}

def Say(message: string)
  echomsg 'alongside: ' .. message
enddef

def Send(message: dict<any>)
  if running && job_status(job) == 'run'
    ch_sendraw(job, json_encode(extend(message, {jsonrpc: '2.0'})) .. "\n")
  endif
enddef

def Notify(method: string, params: dict<any>)
  Send({method: method, params: params})
enddef

def Request(method: string, params: dict<any>, Callback: func)
  ++last_id
  pending[last_id] = Callback
  Send({id: last_id, method: method, params: params})
enddef

# The companion

export def Start()
  if running
    return
  endif
  const command = get(g:, 'alongside_command', Program())
  if !executable(command)
    Say('`' .. command .. '` is not executable; is it installed?')
    return
  endif
  # The same after a restart: by these the companion finds its former port.
  arguments = [command, 'bridge', '--name', 'vim', '--display-name', 'Vim', '--pid', string(getpid()),
    '--workspace', Workspace()]
  restarts = []
  Launch('')
enddef

# By its name where that is on the PATH, so that an update is found too; else where it was when it installed this plugin.
def Program(): string
  if !executable('alongside')
    try
      return json_decode(join(readfile(ROOT .. '/.alongside-installed.json'))).program
    catch
    endtry
  endif
  return 'alongside'
enddef

export def Stop()
  running = false
  ch_close_in(job)
  autocmd_delete([{group: 'alongside', event: '*'}])
enddef

def Workspace(): string
  const git = finddir('.git', getcwd(-1) .. ';')
  return git == '' ? getcwd(-1) : fnamemodify(git, ':p:h:h')
enddef

def Launch(news: string)
  running = true
  job = job_start(arguments, {
    mode: 'nl',
    out_cb: (_, line: string) => Receive(line),
    err_io: 'null',
    exit_cb: (_, code: number) => OnExit(code),
    stoponexit: '',
  })
  Request('hello', {protocol: 1, name: 'vim', watch: true, interactive: true}, (answer) => {
    if has_key(answer, 'error')
      Say(answer.error.message)
      return
    endif
    Request('terminal/environment', {}, (told) => {
      for [name, value] in items(get(get(told, 'result', {}), 'variables', {}))
        setenv(name, value)
      endfor
    })
    ReportAll()
    Refresh()
    if news != ''
      Say(news)
    endif
  })
enddef

def OnExit(code: number)
  pending = {}
  if !running || v:exiting != v:null
    return
  endif
  running = false
  if code == 0
    Say('the companion was stopped; run :AlongsideStart to start it again')
    return
  endif
  restarts = filter(restarts, (_, moment) => localtime() - moment < 60) + [localtime()]
  if len(restarts) > MOST_RESTARTS
    Say('the companion keeps crashing; exit code ' .. code)
    return
  endif
  Launch('the companion crashed and was restarted')
enddef

def Receive(line: string)
  var message: dict<any>
  try
    message = json_decode(line)
  catch
    return
  endtry
  if !has_key(message, 'method')
    const id = string(get(message, 'id', 0))
    if has_key(pending, id)
      call(remove(pending, id), [message])
    endif
  elseif message.method == 'review/opened' || message.method == 'review/changed'
    reviews[message.params.id] = message.params
    if message.method == 'review/opened'
      Say(Describe(message.params) .. '; review with :AlongsideReview')
    endif
  elseif message.method == 'review/closed'
    OnClosed(message.params)
  elseif message.method == 'resync'
    Refresh()
  endif
enddef

# What agents are told

def Path(buffer: number): string
  const name = bufname(buffer)
  if name == '' || getbufvar(buffer, '&buftype') != '' || name =~ '^\a[[:alnum:]+.-]\+://'
    return ''
  endif
  return fnamemodify(name, ':p')
enddef

def ReportAll()
  unsaved = {}
  for info in getbufinfo({buflisted: 1, bufloaded: 1})
    Open(info.bufnr)
    ReportUnsaved(info.bufnr)
  endfor
  Focus()
  augroup alongside
    autocmd!
    autocmd BufEnter,WinEnter,CursorMoved,CursorMovedI,ModeChanged,FocusGained * Focus()
    autocmd BufReadPost,BufNewFile * Open(str2nr(expand('<abuf>')))
    autocmd BufDelete,BufWipeout * Close(Path(str2nr(expand('<abuf>'))))
    autocmd TextChanged,TextChangedI,BufWritePost,BufReadPost * ReportUnsaved(str2nr(expand('<abuf>')))
    autocmd DirChanged global Notify('workspace/set', {folders: [Workspace()]})
  augroup END
enddef

def Open(buffer: number)
  if Path(buffer) != ''
    Notify('context/open', {path: Path(buffer)})
  endif
enddef

def Close(path: string)
  if path != ''
    Notify('context/buffer', {path: path})
    Notify('context/close', {path: path})
  endif
enddef

def Focus()
  const path = Path(bufnr())
  if path == '' || mode() =~ '^[ct]'
    # Agents that are started elsewhere find the editor that was used last.
    Notify('window/focus', {})
    return
  endif
  const before = strpart(getline('.'), 0, col('.') - 1)
  var params: dict<any> = {path: path, cursor: {line: line('.'), character: Utf16Length(before) + 1}}
  if mode() =~ "^[vV\<C-V>]"
    params.selectedText = Selection()
  endif
  Notify('context/focus', params)
enddef

def Utf16Length(text: string): number
  return reduce(str2list(text), (sum, char) => sum + (char > 0xffff ? 2 : 1), 0)
enddef

def Selection(): string
  var [from, to] = [getpos('v')[1 : 2], getpos('.')[1 : 2]]
  if from[0] > to[0] || from[0] == to[0] && from[1] > to[1]
    [from, to] = [to, from]
  endif
  var lines = getline(from[0], to[0])
  if mode() == 'v' && !empty(lines)
    # The last character with all its bytes.
    const last = strpart(lines[-1], 0, to[1] - 1)
    lines[-1] = last .. matchstr(strpart(lines[-1], to[1] - 1), '^.')
    lines[0] = strpart(lines[0], from[1] - 1)
  endif
  return join(lines, "\n")
enddef

def ReportUnsaved(buffer: number)
  const path = Path(buffer)
  if path == ''
    return
  elseif getbufvar(buffer, '&modified')
    const text = TextOf(buffer)
    if get(unsaved, path, '') != text
      unsaved[path] = text
      Notify('context/buffer', {path: path, text: text})
    endif
  elseif has_key(unsaved, path)
    remove(unsaved, path)
    Notify('context/buffer', {path: path})
  endif
enddef

# Texts: what is not touched goes back byte for byte

def TextOf(buffer: number): string
  const ending = ENDINGS[getbufvar(buffer, '&fileformat')]
  const text = join(getbufline(buffer, 1, '$'), ending)
  return (getbufvar(buffer, '&bomb') ? BOM : '') .. text .. (getbufvar(buffer, '&endofline') ? ending : '')
enddef

def Put(text: string)
  var rest = text
  const bomb = strcharpart(rest, 0, 1) ==# BOM
  if bomb
    rest = strcharpart(rest, 1)
  endif
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
  deletebufline('', 1, '$')
  setline(1, lines)
  &l:fileformat = is_dos ? 'dos' : 'unix'
  &l:bomb = bomb
  &l:endofline = ends
  &l:modified = false
enddef

# What agents propose

def Describe(review: dict<any>): string
  return printf('%s (+%d -%d), %s', fnamemodify(review.path, ':~:.'), review.size.added, review.size.removed, review.agent)
enddef

def Refresh()
  Request('review/list', {}, (answer) => {
    reviews = {}
    for review in get(answer, 'result', [])
      reviews[review.id] = review
    endfor
    if !empty(view) && !has_key(reviews, view.id)
      Hide()
    endif
  })
enddef

# Shows the change that waits, or a list if there are several.
export def Review()
  const waiting = sort(values(reviews), (one, other) => one.id - other.id)
  if !empty(view)
    Say('accept or reject the open change first')
    return
  elseif empty(waiting)
    Say('no pending changes')
    return
  endif
  var choice = 1
  if len(waiting) > 1
    choice = inputlist(['Pending changes:'] + mapnew(waiting, (index, review) => (index + 1) .. ' ' .. Describe(review)))
  endif
  if choice >= 1 && choice <= len(waiting)
    Request('review/get', {review: waiting[choice - 1].id}, (answer) => {
      if has_key(answer, 'error')
        Say(answer.error.message)
      else
        Show(answer.result)
      endif
    })
  endif
enddef

def Show(review: dict<any>)
  view = {id: review.id, base: get(review, 'base', ''), proposal: review.proposal, over: false, written: false}
  tabnew
  view.file = Window('nofile', 'alongside://' .. review.id .. review.path .. ' (file)', view.base)
  setlocal nomodifiable
  rightbelow vnew
  view.buffer = Window('acwrite', 'alongside://' .. review.id .. review.path, review.draft)
  autocmd BufWriteCmd <buffer> Written()
  autocmd BufWipeout <buffer> Wiped()
  diffupdate
  normal! gg
  if diff_hlID(1, 1) == 0
    silent! normal! ]c
  endif
  if get(g:, 'alongside_keys', 1)
    nnoremap <buffer> <LocalLeader>a <ScriptCmd>SettleHunk(true)<CR>
    nnoremap <buffer> <LocalLeader>r <ScriptCmd>SettleHunk(false)<CR>
    nnoremap <buffer> <LocalLeader>A <ScriptCmd>Accept(false)<CR>
    nnoremap <buffer> <LocalLeader>R <ScriptCmd>Reject()<CR>
  endif
  for note in review.notes
    Say(note)
  endfor
enddef

def Window(kind: string, name: string, text: string): number
  &l:buftype = kind
  setlocal bufhidden=wipe noswapfile
  execute 'silent file ' .. fnameescape(name)
  Put(text)
  diffthis
  return bufnr()
enddef

# Takes or leaves the hunk under the cursor, and goes to the next.
def SettleHunk(take: bool)
  if !take
    silent! diffget
  endif
  silent! normal! ]c
enddef

def Written()
  &l:modified = false
  view.written = true
  Accept(false)
enddef

def Wiped()
  if !empty(view) && !view.over && v:exiting == v:null
    if !view.written
      Decide('review/reject', {})
    endif
    timer_start(0, (_) => Hide())
  endif
enddef

def Hide()
  if !empty(view)
    const buffers = [view.buffer, view.file]
    view.over = true
    view = {}
    for buffer in buffers
      if bufexists(buffer)
        execute 'bwipeout! ' .. buffer
      endif
    endfor
  endif
enddef

export def Accept(insist: bool)
  if empty(view)
    Say('no change is open; run :AlongsideReview')
    return
  endif
  # A command gives a number.
  Decide('review/accept', {content: Draft(), evenIfEmpty: insist ? true : false})
enddef

# All hunks rejected: then the ends of lines and of the file are the file's too.
def Draft(): string
  const draft = TextOf(view.buffer)
  const Bare = (text) => trim(substitute(substitute(text, BOM, '', ''), "\r\n", "\n", 'g'), "\n", 2)
  return Bare(draft) ==# Bare(view.base) && Bare(draft) !=# Bare(view.proposal) ? view.base : draft
enddef

export def Reject()
  if empty(view)
    Say('no change is open; run :AlongsideReview')
    return
  endif
  Decide('review/reject', {})
enddef

def Decide(method: string, params: dict<any>)
  Request(method, extend({review: view.id}, params), (answer) => {
    if has_key(answer, 'error')
      Say(answer.error.message)
      if !empty(view)
        view.written = false
        setbufvar(view.buffer, '&modified', true)
      endif
    endif
  })
enddef

def OnClosed(closed: dict<any>)
  if has_key(reviews, closed.review)
    remove(reviews, closed.review)
  endif
  if !empty(view) && view.id == closed.review
    Hide()
  endif
  Say(fnamemodify(closed.path, ':~:.') .. ': ' .. closed.outcome)
enddef
