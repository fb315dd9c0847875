-- The lines of a diff.
local tests = {}

local function numbered(count, changed)
  local lines = {}
  for number = 1, count do
    lines[number] = (changed[number] or tostring(number)) .. '\n'
  end
  return table.concat(lines)
end

local function hunk(state, start)
  return { state = state, base = { start = start, count = 1 }, draft = { start = start, count = 1 } }
end

local function diff(review)
  return table.concat(require('alongside.preview').lines(vim.tbl_extend('force', { notes = {} }, review)), ';')
end

function tests.hunks_have_context_and_rejected_ones_are_left_out()
  local shown = diff({
    base = numbered(20, {}),
    draft = numbered(20, { [2] = 'two', [4] = 'four' }),
    hunks = { hunk('accepted', 2), hunk('edited', 4), hunk('rejected', 15) },
  })
  assert(shown == '@@ line 2 @@; 1;-2;+two; 3;-4;+four; 5; 6; 7', shown)
end

function tests.distant_hunks_have_headers_of_their_own()
  local shown = diff({
    base = numbered(20, {}),
    draft = numbered(20, { [1] = 'one', [20] = 'twenty' }),
    hunks = { hunk('accepted', 1), hunk('accepted', 20) },
  })
  assert(shown == '@@ line 1 @@;-1;+one; 2; 3; 4;@@ line 20 @@; 17; 18; 19;-20;+twenty', shown)
end

function tests.new_file_and_removed_lines_are_shown()
  local new = diff({
    draft = 'a\nb\n',
    hunks = { { state = 'accepted', base = { start = 1, count = 0 }, draft = { start = 1, count = 2 } } },
  })
  assert(new == '@@ line 1 @@;+a;+b', new)
  local removed = diff({
    base = 'a\nb\n',
    draft = 'a\n',
    hunks = { { state = 'accepted', base = { start = 2, count = 1 }, draft = { start = 2, count = 0 } } },
    notes = { 'A note.' },
  })
  assert(removed == 'A note.;@@ line 2 @@; a;-b', removed)
end

return tests
