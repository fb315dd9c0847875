vim9script
# Which folder is reported as the workspace.

import '../autoload/alongside/bridge.vim'

def g:Test_folder_with_an_empty_git_directory_is_not_a_repository()
  const previous = getcwd()
  const above = resolve(fnamemodify(tempname(), ':h')) .. '/above'
  const below = above .. '/below'
  mkdir(below, 'p')
  execute 'cd ' .. fnameescape(below)
  mkdir(above .. '/.git')
  assert_equal(below, bridge.Workspace())
  writefile(['ref: refs/heads/main'], above .. '/.git/HEAD')
  assert_equal(above, bridge.Workspace())
  # A worktree.
  writefile(['gitdir: elsewhere'], below .. '/.git')
  assert_equal(below, bridge.Workspace())
  execute 'cd ' .. fnameescape(previous)
  delete(above, 'rf')
enddef
