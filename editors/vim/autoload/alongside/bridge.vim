vim9script
# The companion as a Vim job: JSON-RPC, one message per line. See docs/PROTOCOL.md.

const MAX_RESTARTS = 5
const MAX_LOG_LINES = 1000
const ROOT = expand('<sfile>:p:h:h:h')

var job: job
var arguments: list<string>
var is_running = false
var pending: dict<func> = {}
var last_id = 0
var restarts: list<number> = []
var handlers: dict<func> = {}
var Ready: func
var log: list<string> = []

export def Message(message: string)
  echomsg 'alongside: ' .. message
  Log(message)
enddef

export def IsRunning(): bool
  return is_running
enddef

# Calls Handler with the parameters of every notification of this method.
export def On(method: string, Handler: func)
  handlers[method] = Handler
enddef

# Messages

def Send(message: dict<any>): bool
  if !is_running || job_status(job) != 'run'
    return false
  endif
  ch_sendraw(job, json_encode(extend(message, {jsonrpc: '2.0'})) .. "\n")
  return true
enddef

export def Notify(method: string, params: dict<any>)
  Send({method: method, params: params})
enddef

# Calls Callback with the response, which has either `result` or `error`.
export def Request(method: string, params: dict<any>, Callback: func)
  ++last_id
  pending[last_id] = Callback
  if !Send({id: last_id, method: method, params: params})
    remove(pending, last_id)
    Callback({error: {message: 'the companion is not running; run :AlongsideStart'}})
  endif
enddef

def Receive(line: string)
  var message: dict<any>
  try
    message = json_decode(line)
  catch
    Log('ignoring a malformed message')
    return
  endtry
  if has_key(message, 'method')
    if has_key(handlers, message.method)
      call(handlers[message.method], [message.params])
    endif
    return
  endif
  const id = string(get(message, 'id', 0))
  if has_key(pending, id)
    call(remove(pending, id), [message])
  endif
enddef

# Start and stop

# IsReady is called when the companion is ready, and again after every restart.
export def Start(IsReady: func)
  if is_running
    return
  endif
  const command = get(g:, 'alongside_command', Program())
  if !executable(command)
    Message('`' .. command .. '` is not executable; is it installed?')
    return
  endif
  Ready = IsReady
  # The same after a restart: the companion finds its previous port by them.
  arguments = [command, 'bridge', '--name', 'vim', '--display-name', 'Vim', '--pid', string(getpid()),
    '--workspace', Workspace()]
  restarts = []
  Launch('')
enddef

export def Stop()
  if is_running
    is_running = false
    ch_close_in(job)
    FailPending()
  endif
enddef

def FailPending()
  const unanswered = values(pending)
  pending = {}
  for Callback in unanswered
    Callback({error: {message: 'the companion has stopped'}})
  endfor
enddef

# The program that installed this plugin; if it was moved, the one on the PATH.
def Program(): string
  try
    const program: string = json_decode(join(readfile(ROOT .. '/.alongside-installed.json'))).program
    if executable(program)
      return program
    endif
  catch
  endtry
  return 'alongside'
enddef

# The root of a repository. An empty `.git` directory is none: the sandbox of an agent may leave one in the temporary directory.
def IsRepository(folder: string): bool
  const git = folder .. '/.git'
  try
    return filereadable(git) || (isdirectory(git) && !empty(readdir(git, (_) => true)))
  catch
    # It cannot be read.
    return false
  endtry
enddef

export def Workspace(): string
  var folder = getcwd(-1)
  while !IsRepository(folder)
    const parent = fnamemodify(folder, ':h')
    if parent == folder
      return getcwd(-1)
    endif
    folder = parent
  endwhile
  return folder
enddef

def Launch(news: string)
  is_running = true
  job = job_start(arguments, {
    mode: 'nl',
    out_cb: (_, line: string) => Receive(line),
    err_cb: (_, line: string) => Log(line),
    exit_cb: (exited: job, code: number) => OnExit(exited, code),
    stoponexit: '',
  })
  Request('hello', {protocol: 1, name: 'vim', watch: true, interactive: true, opensFiles: true}, (response) => {
    if has_key(response, 'error')
      Message(response.error.message)
      return
    endif
    Request('terminal/environment', {}, (environment) => {
      for [name, value] in items(get(get(environment, 'result', {}), 'variables', {}))
        setenv(name, value)
      endfor
    })
    Ready()
    if news != ''
      Message(news)
    endif
  })
enddef

def OnExit(exited: job, code: number)
  # One that was stopped may exit only after the next one was started.
  if !is_running || exited != job || v:exiting != v:null
    return
  endif
  is_running = false
  FailPending()
  if code == 0
    Message('the companion was stopped; run :AlongsideStart to start it again')
    return
  endif
  restarts = filter(restarts, (_, time) => localtime() - time < 60) + [localtime()]
  if len(restarts) > MAX_RESTARTS
    Message('the companion keeps crashing (exit code ' .. code .. '); see :AlongsideLog')
    return
  endif
  Launch('the companion crashed and was restarted')
enddef

# Log

def Log(line: string)
  add(log, strftime('%H:%M:%S ') .. line)
  if len(log) > MAX_LOG_LINES
    remove(log, 0, len(log) - MAX_LOG_LINES - 1)
  endif
enddef

# Shows the companion's stderr and the plugin's own messages.
export def ShowLog()
  execute 'botright split ' .. fnameescape('alongside://log')
  setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted modifiable
  deletebufline('', 1, '$')
  setline(1, empty(log) ? ['The log is empty.'] : log)
  setlocal nomodifiable nomodified
  normal! G
enddef
