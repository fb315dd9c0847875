-- Messages, restarts, and the end.
local tests = {}

function tests.lines_may_arrive_in_any_pieces()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  local words = {}
  require('alongside.bridge').on('test', function(params)
    words[#words + 1] = params.word
  end)
  local all = '{"method":"test","params":{"word":"one"}}\n\n{"method":"test","params":{"word":"two"}}\n'
  for cut = 1, #all do
    words = {}
    fake.send_raw(all:sub(1, cut))
    fake.send_raw(all:sub(cut + 1))
    assert(table.concat(words, ' ') == 'one two', cut)
  end
end

function tests.folder_with_an_empty_git_directory_is_not_a_repository()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  local previous = vim.fn.getcwd()
  local above = vim.uv.fs_realpath(vim.fn.fnamemodify(vim.fn.tempname(), ':h')) .. '/above'
  local below = above .. '/below'
  vim.fn.mkdir(below, 'p')
  local function reported()
    vim.cmd.cd(below)
    require('alongside.bridge').move()
    local all = fake.params('workspace/set')
    return all[#all].folders[1]
  end
  vim.fn.mkdir(above .. '/.git')
  assert(reported() == below, reported())
  vim.fn.writefile({ 'ref: refs/heads/main' }, above .. '/.git/HEAD')
  assert(reported() == above, reported())
  -- A worktree.
  vim.fn.writefile({ 'gitdir: elsewhere' }, below .. '/.git')
  assert(reported() == below, reported())
  vim.cmd.cd(previous)
  vim.fn.delete(above, 'rf')
end

function tests.malformed_message_is_ignored()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  fake.send_raw('no json\n"a string"\n{"method":"unknown"}\n{"id":4711}\n')
  assert(require('alongside.bridge').is_running())
end

function tests.companion_that_keeps_crashing_is_not_restarted()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  for _ = 1, 5 do
    fake.exit(3)
    assert(require('alongside.bridge').is_running())
  end
  fake.exit(3)
  assert(not require('alongside.bridge').is_running() and fake.started() == 6)
  assert(fake.has_notice('keeps crashing (exit code 3)') == 1, vim.inspect(fake.notices))
end

function tests.stopped_companion_stays_stopped()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  fake.exit(0)
  assert(not require('alongside.bridge').is_running() and fake.started() == 1)
  assert(fake.has_notice('the companion was stopped') == 1, vim.inspect(fake.notices))
end

function tests.exit_of_a_stopped_companion_leaves_the_next_one_alone()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  require('alongside').stop()
  require('alongside').start()
  fake.exit(0, 1)
  assert(require('alongside.bridge').is_running() and #fake.notices == 0, vim.inspect(fake.notices))
end

function tests.restart_keeps_pending_changes_and_quitting_does_not()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'text' })
  -- As before Neovim 0.12.
  vim.api.nvim_exec_autocmds('VimLeavePre', {})
  require('alongside.bridge').exiting('quit')
  assert(#fake.params('leaving') == 0)
  require('alongside.bridge').exiting('restart')
  assert(#fake.params('leaving') == 1)
end

function tests.requests_fail_when_the_companion_stops()
  local fake = require('fake_companion')
  fake.results.status = false
  fake.open('a.txt', { 'text' })
  local message
  require('alongside.bridge').request('status', nil, function(error)
    message = error and error.message
  end)
  require('alongside').stop()
  assert(message == 'the companion has stopped', message)
  require('alongside.bridge').request('status', nil, function(error)
    message = error and error.message
  end)
  assert(message == 'the companion is not running; run :AlongsideStart', message)
end

return tests
