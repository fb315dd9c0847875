;;; alongside-bridge.el --- Run the companion  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Starts `alongside bridge', exchanges JSON-RPC messages with it, one per
;; line (see docs/PROTOCOL.md of alongside), and restarts it when it
;; crashes.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'seq)
(require 'subr-x)

(declare-function project-root "project" (project))

(defgroup alongside nil
  "Terminal coding agents alongside Emacs."
  :group 'tools
  :prefix "alongside-")

(defcustom alongside-command "alongside"
  "The alongside program.
By default the program that installed this package is used, and
if it was moved, the one on the variable `exec-path'."
  :type 'string)

(defcustom alongside-workspace nil
  "The workspace folders reported to agents.
A list, or a function that returns one.  If nil, they are the
projects of all open files, and the directory that Emacs was
started in unless that is your home."
  :type '(choice (const :tag "The projects of open files" nil)
                 (repeat directory)
                 function))

(defvar alongside-changed-hook nil
  "Run when the companion, its agents or its reviews have changed.")

(defvar alongside-bridge-ready-hook nil
  "Run when the companion is ready, and again after every restart.")

(defvar alongside-bridge-welcome nil
  "The companion's response to `hello', a plist; nil if there is none yet.")

(defvar alongside-bridge-agents nil
  "The connected agents: a list of plists.")

(defvar alongside-bridge-variables nil
  "The variables that point agents in terminals at this Emacs.
An alist of names and values.")

(defconst alongside-bridge--max-restarts 5
  "A companion that crashes this often in a minute is not restarted again.")

(defconst alongside-bridge--max-error-chars 4000
  "How much of the companion's stderr is kept.")

(defvar alongside-bridge--process nil)
(defvar alongside-bridge--arguments nil
  "The companion's program and arguments.
They stay the same after a restart: the companion finds its
previous port by them.")
(defvar alongside-bridge--folders nil
  "The workspace folders reported last.")
(defvar alongside-bridge--restarts nil
  "The times of the last restarts, in seconds.")
(defvar alongside-bridge--handlers nil
  "An alist of notification methods and functions.")
(defvar alongside-bridge--pending (make-hash-table)
  "The callbacks of requests, by id.")
(defvar alongside-bridge--last-id 0)
(defvar alongside-bridge--pieces nil
  "The pieces of an incomplete line, the last one first.")
(defvar alongside-bridge--lines nil
  "Lines to be handled.")
(defvar alongside-bridge--handling nil
  "Whether lines are being handled.")

(defun alongside-message (format &rest arguments)
  "Show FORMAT with ARGUMENTS to the user."
  (message "alongside: %s" (apply #'format-message format arguments)))

(defun alongside-bridge-agent-name (name version)
  "Return the agent with NAME and VERSION, which may be nil, for the user."
  (if version (concat name " " version) name))

(defun alongside-bridge-on (method handler)
  "Call HANDLER with the parameters of every notification of METHOD."
  (setf (alist-get method alongside-bridge--handlers nil nil #'equal) handler))

(defun alongside-bridge-running-p ()
  "Return non-nil if the companion is running."
  (process-live-p alongside-bridge--process))

;;;; Messages

(defun alongside-bridge--encode (message)
  "Return MESSAGE, a plist, as JSON in UTF-8."
  (let ((line (if (json-available-p)
                  (json-serialize message)
                (json-encode message))))
    (if (multibyte-string-p line)
        (encode-coding-string line 'utf-8-unix t)
      line)))

(defun alongside-bridge--decode (line)
  "Return the message in LINE: plists and lists; false and null are nil."
  (condition-case nil
      (if (json-available-p)
          (json-parse-string line :object-type 'plist :array-type 'list
                             :null-object nil :false-object nil)
        (signal 'json-error nil))
    ;; Before Emacs 30, the built-in parser refuses a null character.
    (json-error
     (let ((json-object-type 'plist)
           (json-array-type 'list)
           (json-key-type 'keyword)
           (json-null nil)
           (json-false nil))
       (json-read-from-string line)))))

(defun alongside-bridge--parameters (plist)
  "Return PLIST without nil values, as parameters of a message."
  (or (cl-loop for (key value) on plist by #'cddr
               when value append (list key value))
      (make-hash-table)))

(defun alongside-bridge--send (message)
  "Send MESSAGE, and return whether it was sent.
A file name or text that is not Unicode cannot be sent."
  (when (alongside-bridge-running-p)
    (condition-case nil
        (progn
          (process-send-string
           alongside-bridge--process
           (concat (alongside-bridge--encode `(:jsonrpc "2.0" ,@message)) "\n"))
          t)
      (error nil))))

(defun alongside-bridge-notify (method &rest parameters)
  "Send a notification of METHOD with PARAMETERS, a plist.
Nil parameters are skipped."
  (alongside-bridge--send
   (list :method method :params (alongside-bridge--parameters parameters))))

(defun alongside-bridge-request (method parameters callback)
  "Send a request of METHOD with PARAMETERS, a plist.
Nil parameters are skipped.  CALLBACK is called with an error and
a result.  It must not block."
  (let ((id (setq alongside-bridge--last-id (1+ alongside-bridge--last-id))))
    (puthash id callback alongside-bridge--pending)
    (unless (alongside-bridge--send
             (list :id id :method method
                   :params (alongside-bridge--parameters parameters)))
      (remhash id alongside-bridge--pending)
      (funcall callback
               '(:message "the companion is not running; turn it on with M-x alongside-mode")
               nil))))

(defun alongside-bridge-ask (method &rest parameters)
  "Send a request of METHOD with PARAMETERS, a plist; return the result.
Only for commands, which the user can quit."
  (let ((limit (time-add nil 15)) response)
    (alongside-bridge-request
     method parameters
     (lambda (problem result) (setq response (list problem result))))
    (while (and (not response) (time-less-p nil limit))
      (accept-process-output alongside-bridge--process 0.1))
    (pcase response
      (`(nil ,result) result)
      (`(,problem ,_) (user-error "Alongside: %s" (plist-get problem :message)))
      (_ (user-error "Alongside: the companion is not responding")))))

(defun alongside-bridge--handle-line (line)
  "Handle the message in LINE."
  (let* ((message (alongside-bridge--decode line))
         (method (plist-get message :method)))
    (if method
        (when-let ((handler (cdr (assoc method alongside-bridge--handlers))))
          (funcall handler (plist-get message :params)))
      (let* ((id (plist-get message :id))
             (callback (gethash id alongside-bridge--pending)))
        (remhash id alongside-bridge--pending)
        (when callback
          (funcall callback
                   (plist-get message :error) (plist-get message :result)))))))

(defun alongside-bridge--filter (process piece)
  "Handle a PIECE of the output of PROCESS.
Sending may call this again while a message is being handled; the
order stays, because only the outermost call handles lines."
  (when (eq process alongside-bridge--process)
    (let ((lines (split-string piece "\n")))
      (push (car lines) alongside-bridge--pieces)
      (dolist (next (cdr lines))
        (let ((line (apply #'concat (nreverse alongside-bridge--pieces))))
          (setq alongside-bridge--pieces (list next))
          (setq alongside-bridge--lines
                (nconc alongside-bridge--lines (list line))))))
    (unless alongside-bridge--handling
      (let ((alongside-bridge--handling t))
        (while alongside-bridge--lines
          (let ((line (pop alongside-bridge--lines)))
            (unless (string-empty-p line)
              ;; An error in one message does not affect the next ones.
              (condition-case problem
                  (save-match-data
                    (save-current-buffer
                      (alongside-bridge--handle-line line)))
                (error (alongside-message "%s" (error-message-string problem)))))))))))

;;;; Workspace

(defvar alongside-bridge--projects (make-hash-table :test #'equal)
  "A cache of the project root around a directory.")

(defun alongside-bridge--project-of (directory)
  "Return the root of the project around DIRECTORY, or nil.
Your home, the file system's root and a directory with an empty
`.git' directory are not projects."
  (let ((known (gethash directory alongside-bridge--projects 'unknown)))
    (if (not (eq known 'unknown))
        known
      (let* ((project (ignore-errors (project-current nil directory)))
             (root (and project (expand-file-name (project-root project)))))
        (puthash directory
                 (unless (or (alongside-bridge--everything-p root)
                             (alongside-bridge--empty-repository-p root))
                   root)
                 alongside-bridge--projects)))))

(defun alongside-bridge--empty-repository-p (directory)
  "Return non-nil if DIRECTORY has an empty `.git' directory.
The sandbox of an agent may leave one in the temporary directory."
  (let ((git (and directory (expand-file-name ".git" directory))))
    (and git (file-directory-p git) (directory-empty-p git))))

(defun alongside-bridge--everything-p (directory)
  "Return non-nil if DIRECTORY is your home or the file system's root."
  (and directory
       (member (file-name-as-directory (expand-file-name directory))
               (list (file-name-as-directory (expand-file-name "~")) "/"))))

(defun alongside-bridge-opened (path)
  "Add the project of the newly opened file at PATH to the workspace."
  (remhash (file-name-directory path) alongside-bridge--projects)
  (alongside-bridge-move))

(defun alongside-bridge--default-folders ()
  "Return the projects of open files and of the directory Emacs was started in."
  (let* ((started (or command-line-default-directory default-directory))
         (directories
          (cons started
                (delq nil
                      (mapcar (lambda (buffer)
                                (let ((file (buffer-file-name buffer)))
                                  (and file (not (file-remote-p file))
                                       (file-name-directory file))))
                              (buffer-list)))))
         (projects (mapcar (lambda (directory)
                             (unless (file-remote-p directory)
                               (alongside-bridge--project-of directory)))
                           (seq-uniq directories))))
    (or (delq nil
              (cons (or (car projects)
                        (unless (alongside-bridge--everything-p started)
                          started))
                    (cdr projects)))
        (list started))))

(defun alongside-bridge-folders ()
  "Return the workspace folders, absolute and without duplicates."
  (let ((folders (cond ((functionp alongside-workspace)
                        (funcall alongside-workspace))
                       (alongside-workspace)
                       (t (alongside-bridge--default-folders)))))
    (seq-uniq
     (mapcar (lambda (folder)
               (directory-file-name (expand-file-name folder)))
             (seq-filter (lambda (folder)
                           (and (not (file-remote-p folder))
                                (file-directory-p folder)))
                         folders)))))

(defun alongside-bridge-move ()
  "Report the workspace folders if they have changed."
  (when alongside-bridge-welcome
    (let ((folders (alongside-bridge-folders)))
      (unless (or (null folders) (equal folders alongside-bridge--folders))
        (setq alongside-bridge--folders folders)
        (alongside-bridge-request
         "workspace/set" (list :folders (vconcat folders))
         (lambda (problem _)
           (if problem
               (alongside-message "%s" (plist-get problem :message))
             (plist-put alongside-bridge-welcome :workspace folders))
           (alongside-bridge--fetch-variables)))))))

;;;; Terminals

(defun alongside-bridge--set-variables (variables)
  "Set VARIABLES, an alist, for every process started from now on."
  (let ((environment (default-value 'process-environment)))
    (pcase-dolist (`(,name . ,_) alongside-bridge-variables)
      (let ((prefix (concat name "=")))
        (setq environment
              (seq-remove (lambda (entry) (string-prefix-p prefix entry))
                          environment))))
    (pcase-dolist (`(,name . ,value) variables)
      (push (concat name "=" value) environment))
    (setq alongside-bridge-variables variables)
    ;; Not `setenv', which changes a buffer-local environment if there is one.
    (setq-default process-environment environment)))

(defun alongside-bridge--fetch-variables ()
  "Fetch the environment variables for terminals."
  (alongside-bridge-request
   "terminal/environment" nil
   (lambda (_ result)
     (when result
       (alongside-bridge--set-variables
        (cl-loop for (name value) on (plist-get result :variables) by #'cddr
                 collect (cons (substring (symbol-name name) 1) value)))))))

;;;; Start and stop

(defun alongside-bridge-program ()
  "Return the path of the alongside program, or nil if there is none."
  (or (and (equal alongside-command "alongside") (alongside-bridge--installer))
      (executable-find alongside-command)))

(defun alongside-bridge--installer ()
  "Return the program that installed this package, unless it was moved."
  (let* ((directory (file-name-directory
                     (or (locate-library "alongside-bridge") default-directory)))
         (list (expand-file-name ".alongside-installed.json" directory)))
    (when-let ((program (ignore-errors
                          (with-temp-buffer
                            (insert-file-contents list)
                            (plist-get (alongside-bridge--decode (buffer-string))
                                       :program)))))
      (and (file-executable-p program) program))))

(defun alongside-bridge-errors ()
  "Return the end of the companion's stderr."
  (let ((buffer (get-buffer " *alongside errors*")))
    (if buffer
        (with-current-buffer buffer
          (string-trim (buffer-string)))
      "")))

(defun alongside-bridge--keep-errors (process text)
  "Add TEXT, a piece of stderr, to the buffer of PROCESS; drop the oldest."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert text)
      (delete-region (point-min)
                     (max (point-min)
                          (- (point-max) alongside-bridge--max-error-chars))))))

(defun alongside-bridge--changed ()
  "Run `alongside-changed-hook' and redraw the mode line."
  (run-hooks 'alongside-changed-hook)
  (force-mode-line-update t))

(defun alongside-bridge--sentinel (process _event)
  "Restart PROCESS if it crashed."
  (when (and (eq process alongside-bridge--process)
             (not (process-live-p process)))
    (let ((code (process-exit-status process)))
      (alongside-bridge--forget)
      (if (eql code 0)
          (progn
            (alongside-bridge--set-variables nil)
            (alongside-message "the companion was stopped; run M-x alongside-start to start it again"))
        (let ((now (float-time)))
          (setq alongside-bridge--restarts
                (seq-filter (lambda (time) (< (- now time) 60))
                            alongside-bridge--restarts))
          (if (>= (length alongside-bridge--restarts)
                  alongside-bridge--max-restarts)
              (alongside-message "the companion keeps crashing (exit code %s); \
see M-x alongside-doctor" code)
            (push now alongside-bridge--restarts)
            (alongside-bridge--launch
             "the companion crashed and was restarted"))))
      (alongside-bridge--changed))))

(defun alongside-bridge--forget ()
  "Forget the companion, and fail the requests without a response."
  (let ((callbacks (hash-table-values alongside-bridge--pending)))
    (setq alongside-bridge--process nil
          alongside-bridge--pieces nil
          alongside-bridge--lines nil
          alongside-bridge--folders nil
          alongside-bridge-welcome nil
          alongside-bridge-agents nil)
    (clrhash alongside-bridge--pending)
    (dolist (callback callbacks)
      (ignore-errors
        (funcall callback '(:message "the companion has stopped") nil)))))

(defun alongside-bridge--launch (&optional message)
  "Start the companion, and show MESSAGE once it is ready."
  (let* ((default-directory (expand-file-name
                             (or (seq-find #'file-directory-p
                                           (list "~/" temporary-file-directory))
                                 "/")))
         (buffer (get-buffer-create " *alongside errors*" t))
         (errors (make-pipe-process
                  :name "alongside errors" :buffer buffer :noquery t
                  :filter #'alongside-bridge--keep-errors
                  :sentinel #'ignore :coding 'utf-8-unix)))
    (condition-case problem
        (setq alongside-bridge--process
              (make-process
               :name "alongside" :command alongside-bridge--arguments
               :connection-type 'pipe :noquery t
               :coding '(utf-8-unix . no-conversion)
               :stderr errors
               :filter #'alongside-bridge--filter
               :sentinel #'alongside-bridge--sentinel))
      (error
       (delete-process errors)
       (signal (car problem) (cdr problem))))
    (alongside-bridge-request
     "hello" '(:protocol 1 :name "emacs" :watch t :interactive t :opensFiles t)
     (lambda (problem welcome)
       (if problem
           (alongside-message "%s" (plist-get problem :message))
         (setq alongside-bridge-welcome welcome)
         (alongside-bridge-move)
         (run-hooks 'alongside-bridge-ready-hook)
         (when message
           (alongside-message "%s" message))
         (alongside-bridge--changed))))))

(defun alongside-bridge-start ()
  "Start the companion, unless it is running."
  (unless (alongside-bridge-running-p)
    (let ((program (alongside-bridge-program))
          (folders (alongside-bridge-folders)))
      (if (not program)
          (alongside-message "cannot find the program `%s'; see M-x alongside-doctor"
                         alongside-command)
        (setq alongside-bridge--restarts nil
              alongside-bridge--arguments
              `(,program "bridge" "--name" "emacs" "--display-name" "Emacs"
                         "--pid" ,(number-to-string (emacs-pid))
                         ,@(mapcan (lambda (folder) (list "--workspace" folder))
                                   folders)))
        (alongside-bridge--launch)))))

(defvar alongside-bridge--restarting nil
  "Whether Emacs is about to exit and start again.")

(defun alongside-bridge--restart (restart &rest arguments)
  "Call RESTART with ARGUMENTS, and have the companion keep what is pending.
Advice for `restart-emacs', which Emacs has since version 29."
  (let ((alongside-bridge--restarting t))
    (apply restart arguments)))

(defun alongside-bridge-stop ()
  "Stop the companion, which rejects everything pending.
If Emacs is restarting, the next companion has it instead."
  (when-let ((process alongside-bridge--process))
    (when alongside-bridge--restarting
      (alongside-bridge-notify "leaving"))
    (alongside-bridge--forget)
    (alongside-bridge--set-variables nil)
    (when (process-live-p process)
      (process-send-eof process))
    (alongside-bridge--changed)))

(alongside-bridge-on
 "agents/changed"
 (lambda (parameters)
   (setq alongside-bridge-agents (plist-get parameters :agents))
   (alongside-bridge--changed)))

(alongside-bridge-on
 "problems/changed"
 (lambda (parameters)
   (seq-doseq (problem (plist-get parameters :problems))
     (alongside-message "%s" problem))))

(provide 'alongside-bridge)
;;; alongside-bridge.el ends here
