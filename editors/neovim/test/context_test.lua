-- What is reported to agents.
local tests = {}

function tests.selection_over_the_limit_is_cut_between_characters_and_reported_once()
  local fake = require('fake_companion')
  -- One byte before, so that the limit is in the middle of a character.
  fake.open('a.txt', { 'a' .. ('ü'):rep(10000) })
  vim.cmd.normal({ 'ggVG', bang = true })
  fake.event('CursorMoved')
  fake.settle()
  fake.event('CursorMoved')
  fake.settle()
  vim.cmd.normal({ '\27', bang = true })
  local focus = fake.params('context/focus')
  assert(focus[#focus].selectedText == 'a' .. ('ü'):rep(8191), #focus[#focus].selectedText)
  assert(fake.has_notice('the selection is longer than 16 KiB') == 1, vim.inspect(fake.notices))
end

function tests.selection_of_many_lines_is_cut()
  local fake = require('fake_companion')
  fake.open('a.txt', vim.fn['repeat']({ '' }, 40000))
  vim.cmd.normal({ 'GVgg', bang = true })
  fake.event('CursorMoved')
  fake.settle()
  vim.cmd.normal({ '\27', bang = true })
  local focus = fake.params('context/focus')
  assert(focus[#focus].selectedText == ('\n'):rep(16 * 1024))
end

function tests.buffer_over_the_limit_is_reported_once_and_not_sent()
  local fake = require('fake_companion')
  local path = fake.open('large.txt', { 'text' })
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'small' })
  fake.event('TextChanged')
  fake.settle()
  assert(fake.params('context/buffer')[1].text == 'small\n')
  vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.fn['repeat']({ ('0123456789abcde'):rep(1024) }, 1100))
  for _ = 1, 2 do
    fake.event('BufWritePost')
    fake.settle()
  end
  local buffers = fake.params('context/buffer')
  assert(#buffers == 2 and buffers[2].path == path and buffers[2].text == nil, #buffers)
  assert(fake.has_notice('large.txt is larger than 16 MiB') == 1, vim.inspect(fake.notices))
end

function tests.focus_is_reported_even_if_a_terminal_follows_at_once()
  local fake = require('fake_companion')
  local first = fake.open('first.txt', { 'one', 'two' })
  fake.settle()
  vim.api.nvim_win_set_cursor(0, { 2, 1 })
  fake.event('CursorMoved')
  vim.cmd.new()
  vim.bo.buftype = 'nofile'
  fake.event('BufEnter')
  fake.settle()
  local focus = fake.params('context/focus')
  local last = focus[#focus]
  assert(last.path == first and last.cursor.line == 2 and last.cursor.character == 2, vim.inspect(last))
  assert(fake.received[#fake.received].method == 'window/focus')
end

function tests.closed_file_is_not_reported_as_focused()
  local fake = require('fake_companion')
  local path = fake.open('a.txt', { 'one' })
  fake.settle()
  fake.event('CursorMoved')
  vim.cmd.bwipeout({ bang = true })
  fake.settle()
  local is_closed = false
  for _, message in ipairs(fake.received) do
    is_closed = is_closed or message.method == 'context/close'
    assert(not (is_closed and message.method == 'context/focus' and message.params.path == path))
  end
  assert(is_closed)
end

local namespace = vim.api.nvim_create_namespace('alongside-test')

local function diagnose(list)
  vim.diagnostic.set(namespace, vim.api.nvim_get_current_buf(), list)
end

function tests.diagnostics_are_reported_in_characters_and_cleared()
  local fake = require('fake_companion')
  local path = fake.open('a.txt', { 'one', 'ü𝄞two' })
  local error = { lnum = 1, col = 6, end_lnum = 1, end_col = 9, message = 'wrong', source = 'rustc', code = 308 }
  diagnose({ vim.tbl_extend('error', error, { severity = vim.diagnostic.severity.ERROR }) })
  fake.settle()
  local sent = fake.params('context/diagnostics')
  assert(#sent == 1 and sent[1].path == path, vim.inspect(sent))
  local expected = {
    start = { line = 2, character = 4 },
    ['end'] = { line = 2, character = 7 },
    severity = 'error',
    message = 'wrong',
    source = 'rustc',
    code = '308',
  }
  assert(vim.deep_equal(sent[1].diagnostics, { expected }), vim.inspect(sent[1]))
  -- The same once more, as every language server sends it after every change.
  diagnose({ vim.tbl_extend('error', error, { severity = vim.diagnostic.severity.ERROR }) })
  fake.settle()
  assert(#fake.params('context/diagnostics') == 1)
  diagnose({})
  fake.settle()
  sent = fake.params('context/diagnostics')
  assert(#sent == 2 and vim.deep_equal(sent[2], { path = path, diagnostics = {} }), vim.inspect(sent[2]))
end

function tests.diagnostics_from_before_the_start_are_reported_and_go_with_the_buffer()
  local fake = require('fake_companion')
  local path = vim.fn.tempname() .. 'a.txt'
  vim.fn.writefile({ 'one' }, path)
  vim.cmd.edit(vim.fn.fnameescape(path))
  diagnose({ { lnum = 0, col = 0, message = 'wrong', severity = vim.diagnostic.severity.HINT } })
  require('alongside').start()
  fake.settle()
  local sent = fake.params('context/diagnostics')
  assert(#sent == 1 and sent[1].diagnostics[1].severity == 'hint', vim.inspect(sent))
  vim.cmd.bwipeout()
  fake.settle()
  sent = fake.params('context/diagnostics')
  assert(#sent == 2 and #sent[2].diagnostics == 0, vim.inspect(sent))
end

function tests.most_severe_diagnostics_are_reported()
  local fake = require('fake_companion')
  fake.open('a.txt', { 'one' })
  local list = {}
  for number = 1, 300 do
    local severity = number == 300 and vim.diagnostic.severity.ERROR or vim.diagnostic.severity.WARN
    list[number] = { lnum = 0, col = 0, message = 'wrong', severity = severity }
  end
  diagnose(list)
  fake.settle()
  local sent = fake.params('context/diagnostics')[1].diagnostics
  assert(#sent == 200 and sent[1].severity == 'error', #sent)
end

return tests
