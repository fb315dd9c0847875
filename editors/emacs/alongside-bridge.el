;;; alongside-bridge.el --- The companion of this Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Starts `alongside bridge', speaks with it (JSON-RPC, one message a
;; line; docs/PROTOCOL.md of alongside says which) and starts it again
;; when it dies.

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
  "The companion's program.
If it is not on the variable `exec-path', the one that installed
this package is used."
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
  "What the companion said about itself, once it has: a plist.")

(defvar alongside-bridge-agents nil
  "The agents that are connected: a list of plists.")

(defvar alongside-bridge-variables nil
  "The variables that lead agents in terminals to this very Emacs.
An alist of names and values.")

(defconst alongside-bridge--most-restarts 5
  "A companion that dies this often within a minute does not get well.")

(defvar alongside-bridge--process nil)
(defvar alongside-bridge--arguments nil
  "The arguments of the companion, the same after a restart.
By these it finds its former port.")
(defvar alongside-bridge--folders nil
  "The folders that the companion was told last.")
(defvar alongside-bridge--restarts nil
  "When it was started again, in seconds.")
(defvar alongside-bridge--handlers nil
  "An alist of methods and functions.")
(defvar alongside-bridge--pending (make-hash-table)
  "What to call with the answer to a request, by its number.")
(defvar alongside-bridge--last-id 0)
(defvar alongside-bridge--pieces nil
  "The beginning of a line, in pieces, the last one first.")
(defvar alongside-bridge--lines nil
  "Lines that are still to be dealt with.")
(defvar alongside-bridge--dealing nil
  "Whether lines are being dealt with.")

(defun alongside-say (format &rest arguments)
  "Tell the person FORMAT with ARGUMENTS."
  (message "alongside: %s" (apply #'format-message format arguments)))

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
    ;; Before Emacs 30, the one that is built in refuses a null character.
    (json-error
     (let ((json-object-type 'plist)
           (json-array-type 'list)
           (json-key-type 'keyword)
           (json-null nil)
           (json-false nil))
       (json-read-from-string line)))))

(defun alongside-bridge--parameters (plist)
  "Return PLIST without what is nil, as parameters of a message."
  (or (cl-loop for (key value) on plist by #'cddr
               when value append (list key value))
      (make-hash-table)))

(defun alongside-bridge--send (message)
  "Send MESSAGE, and return whether that went well.
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
  "Say METHOD with PARAMETERS, a plist, which needs no answer.
Parameters that are nil are left out."
  (alongside-bridge--send
   (list :method method :params (alongside-bridge--parameters parameters))))

(defun alongside-bridge-request (method parameters callback)
  "Ask METHOD with PARAMETERS, a plist; nil ones are left out.
CALLBACK is called with an error and a result, of which one is
nil unless the result is empty.  It must not wait for anything."
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
  "Ask METHOD with PARAMETERS, a plist, and wait for the answer.
Only for commands: a person can quit."
  (let ((limit (time-add nil 15)) answer)
    (alongside-bridge-request
     method parameters
     (lambda (problem result) (setq answer (list problem result))))
    (while (and (not answer) (time-less-p nil limit))
      (accept-process-output alongside-bridge--process 0.1))
    (pcase answer
      (`(nil ,result) result)
      (`(,problem ,_) (user-error "Alongside: %s" (plist-get problem :message)))
      (_ (user-error "Alongside: the companion is not responding")))))

(defun alongside-bridge--deal-with (line)
  "Give the message in LINE to whom it is for."
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
  "Take a PIECE of the output of PROCESS.
Sending may call this again before a message is dealt with; the
order stays, because only the first call deals with lines."
  (when (eq process alongside-bridge--process)
    (let ((lines (split-string piece "\n")))
      (push (car lines) alongside-bridge--pieces)
      (dolist (next (cdr lines))
        (let ((line (apply #'concat (nreverse alongside-bridge--pieces))))
          (setq alongside-bridge--pieces (list next))
          (setq alongside-bridge--lines
                (nconc alongside-bridge--lines (list line))))))
    (unless alongside-bridge--dealing
      (let ((alongside-bridge--dealing t))
        (while alongside-bridge--lines
          (let ((line (pop alongside-bridge--lines)))
            (unless (string-empty-p line)
              ;; Whatever is wrong with one message, the next ones count.
              (condition-case problem
                  (save-match-data
                    (save-current-buffer
                      (alongside-bridge--deal-with line)))
                (error (alongside-say "%s" (error-message-string problem)))))))))))

;;;; Workspace

(defvar alongside-bridge--projects (make-hash-table :test #'equal)
  "The root of the project around a directory, as found once.")

(defun alongside-bridge--project-of (directory)
  "Return the root of the project around DIRECTORY, or nil.
A project that is your home or everything is none."
  (let ((known (gethash directory alongside-bridge--projects 'unknown)))
    (if (not (eq known 'unknown))
        known
      (let* ((project (ignore-errors (project-current nil directory)))
             (root (and project (expand-file-name (project-root project)))))
        (puthash directory
                 (unless (alongside-bridge--everything-p root) root)
                 alongside-bridge--projects)))))

(defun alongside-bridge--everything-p (directory)
  "Return non-nil if DIRECTORY is your home or the root of all files."
  (and directory
       (member (file-name-as-directory (expand-file-name directory))
               (list (file-name-as-directory (expand-file-name "~")) "/"))))

(defun alongside-bridge-opened (path)
  "Take in that the file at PATH was opened: its project counts."
  (remhash (file-name-directory path) alongside-bridge--projects)
  (alongside-bridge-move))

(defun alongside-bridge--own-folders ()
  "Return the projects of open files and where Emacs was started."
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
  "Return the folders of the workspace, absolute and without doubles."
  (let ((folders (cond ((functionp alongside-workspace)
                        (funcall alongside-workspace))
                       (alongside-workspace)
                       (t (alongside-bridge--own-folders)))))
    (seq-uniq
     (mapcar (lambda (folder)
               (directory-file-name (expand-file-name folder)))
             (seq-filter (lambda (folder)
                           (and (not (file-remote-p folder))
                                (file-directory-p folder)))
                         folders)))))

(defun alongside-bridge-move ()
  "Tell the companion the folders of the workspace, if they are others now."
  (when alongside-bridge-welcome
    (let ((folders (alongside-bridge-folders)))
      (unless (or (null folders) (equal folders alongside-bridge--folders))
        (setq alongside-bridge--folders folders)
        (alongside-bridge-request
         "workspace/set" (list :folders (vconcat folders))
         (lambda (problem _)
           (if problem
               (alongside-say "%s" (plist-get problem :message))
             (plist-put alongside-bridge-welcome :workspace folders))
           (alongside-bridge--learn-variables)))))))

;;;; Terminals

(defun alongside-bridge--set-variables (variables)
  "Give VARIABLES, an alist, to every process that is started from now on."
  (let ((environment (default-value 'process-environment)))
    (pcase-dolist (`(,name . ,_) alongside-bridge-variables)
      (let ((prefix (concat name "=")))
        (setq environment
              (seq-remove (lambda (entry) (string-prefix-p prefix entry))
                          environment))))
    (pcase-dolist (`(,name . ,value) variables)
      (push (concat name "=" value) environment))
    (setq alongside-bridge-variables variables)
    ;; Not `setenv': that would change the environment of one buffer, where
    ;; a buffer has its own.
    (setq-default process-environment environment)))

(defun alongside-bridge--learn-variables ()
  "Ask for the variables of terminals."
  (alongside-bridge-request
   "terminal/environment" nil
   (lambda (_ result)
     (when result
       (alongside-bridge--set-variables
        (cl-loop for (name value) on (plist-get result :variables) by #'cddr
                 collect (cons (substring (symbol-name name) 1) value)))))))

;;;; Start and end

(defun alongside-bridge-program ()
  "Return the companion's program, or nil if it is nowhere."
  (or (executable-find alongside-command)
      (let ((list (expand-file-name
                   ".alongside-installed.json"
                   (file-name-directory
                    (or (locate-library "alongside-bridge") default-directory)))))
        (when-let ((program (ignore-errors
                              (with-temp-buffer
                                (insert-file-contents list)
                                (plist-get (alongside-bridge--decode (buffer-string))
                                           :program)))))
          (and (file-executable-p program) program)))))

(defun alongside-bridge-errors ()
  "Return the last of what the companion said to people."
  (let ((buffer (get-buffer " *alongside errors*")))
    (if buffer
        (with-current-buffer buffer
          (string-trim (buffer-substring-no-properties
                        (max (point-min) (- (point-max) 4000)) (point-max))))
      "")))

(defun alongside-bridge--changed ()
  "Tell everybody who wants to know, and redraw."
  (run-hooks 'alongside-changed-hook)
  (force-mode-line-update t))

(defun alongside-bridge--sentinel (process _event)
  "Start PROCESS again if it died."
  (when (and (eq process alongside-bridge--process)
             (not (process-live-p process)))
    (let ((code (process-exit-status process)))
      (alongside-bridge--forget)
      (if (eql code 0)
          (progn
            (alongside-bridge--set-variables nil)
            (alongside-say "the companion was stopped; run M-x alongside-start to start it again"))
        (let ((now (float-time)))
          (setq alongside-bridge--restarts
                (seq-filter (lambda (moment) (< (- now moment) 60))
                            alongside-bridge--restarts))
          (if (>= (length alongside-bridge--restarts)
                  alongside-bridge--most-restarts)
              (alongside-say "the companion keeps crashing (exit code %s); \
see M-x alongside-doctor" code)
            (push now alongside-bridge--restarts)
            (alongside-bridge--launch
             "the companion crashed and was restarted"))))
      (alongside-bridge--changed))))

(defun alongside-bridge--forget ()
  "Forget the companion; whoever waits for its answers is told."
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
  "Start the companion, and say MESSAGE once it is ready."
  (let* ((default-directory (expand-file-name
                             (or (seq-find #'file-directory-p
                                           (list "~/" temporary-file-directory))
                                 "/")))
         (buffer (get-buffer-create " *alongside errors*" t))
         (errors (make-pipe-process
                  :name "alongside errors" :buffer buffer :noquery t
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
     "hello" '(:protocol 1 :name "emacs" :watch t :interactive t)
     (lambda (problem welcome)
       (if problem
           (alongside-say "%s" (plist-get problem :message))
         (setq alongside-bridge-welcome welcome)
         (alongside-bridge-move)
         (run-hooks 'alongside-bridge-ready-hook)
         (when message
           (alongside-say "%s" message))
         (alongside-bridge--changed))))))

(defun alongside-bridge-start ()
  "Start the companion, unless it is running."
  (unless (alongside-bridge-running-p)
    (let ((program (alongside-bridge-program))
          (folders (alongside-bridge-folders)))
      (if (not program)
          (alongside-say "cannot find the program `%s'; see M-x alongside-doctor"
                         alongside-command)
        (setq alongside-bridge--restarts nil
              alongside-bridge--arguments
              `(,program "bridge" "--name" "emacs" "--display-name" "Emacs"
                         "--pid" ,(number-to-string (emacs-pid))
                         ,@(mapcan (lambda (folder) (list "--workspace" folder))
                                   folders)))
        (alongside-bridge--launch)))))

(defun alongside-bridge-stop ()
  "Stop the companion; pending changes are rejected."
  (when-let ((process alongside-bridge--process))
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

(provide 'alongside-bridge)
;;; alongside-bridge.el ends here
