;;; alongside-doctor.el --- Check the setup  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Shows in a buffer what works, what does not and what to do about it.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-review)

(defvar ediff-diff-program)

(defun alongside-doctor--line (ok format &rest arguments)
  "Insert FORMAT with ARGUMENTS, marked as good if OK."
  (insert (if ok
              (propertize "ok    " 'face 'success)
            (propertize "error " 'face 'warning))
          (apply #'format-message format arguments) "\n"))

(defun alongside-doctor--agents ()
  "Insert whether each agent can connect, and which ones are connected."
  (dolist (agent (plist-get (alongside-bridge-ask "doctor") :agents))
    (let ((connects (plist-get agent :connects)))
      (alongside-doctor--line connects "%s would %sconnect"
                              (or (plist-get agent :displayName) "an agent")
                              (if connects "" "not "))
      (when-let ((hint (and (not connects) (plist-get agent :hint))))
        (insert "      " hint "\n"))))
  (dolist (agent alongside-bridge-agents)
    (alongside-doctor--line t "%s is connected"
                            (alongside-bridge-agent-name
                             (plist-get agent :name)
                             (plist-get agent :version)))))

(defun alongside-doctor--context ()
  "Insert what agents see, and what is hidden from them."
  (let* ((shown (alongside-bridge-ask "context/show"))
         (state (plist-get (plist-get shown :context) :workspaceState)))
    (insert "\nAgents see:\n")
    (dolist (file (plist-get state :openFiles))
      (insert "  " (plist-get file :path)
              (if (plist-get file :isActive) " (active)" "")
              (if (plist-get file :selectedText) " with a selection" "") "\n"))
    (dolist (hidden (plist-get shown :hidden))
      (insert "  hidden: " (plist-get hidden :path) ": "
              (plist-get hidden :reason) "\n"))))

;;;###autoload
(defun alongside-doctor ()
  "Check the setup and show how to fix problems."
  (interactive)
  (let ((buffer (get-buffer-create "*alongside doctor*"))
        (program (alongside-bridge-program)))
    (with-current-buffer buffer
      (special-mode)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (alongside-doctor--line t "Emacs %s, JSON %s" emacs-version
                                (if (json-available-p) "built in" "in Lisp"))
        (require 'ediff)
        (alongside-doctor--line (executable-find ediff-diff-program)
                                "Ediff's program `%s'" ediff-diff-program)
        (if (not program)
            (alongside-doctor--line nil "`%s' is not on your PATH; install alongside, \
or set `alongside-command'" alongside-command)
          (alongside-doctor--line
           t "%s: %s" (abbreviate-file-name program)
           (with-temp-buffer
             (call-process program nil t nil "--version")
             (string-trim (buffer-string))))
          (if (not alongside-bridge-welcome)
              (alongside-doctor--line nil "the companion is not running; \
run M-x alongside-start")
            (alongside-doctor--line
             t "the companion (pid %s) is running for %s"
             (plist-get alongside-bridge-welcome :pid)
             (mapconcat #'abbreviate-file-name
                        (plist-get alongside-bridge-welcome :workspace) ", "))
            (alongside-doctor--line
             alongside-bridge-variables "terminals in Emacs get %s"
             (mapconcat #'car alongside-bridge-variables ", "))
            (alongside-doctor--agents)
            (alongside-doctor--context)))
        (let ((errors (alongside-bridge-errors)))
          (unless (string-empty-p errors)
            (insert "\nCompanion output:\n" errors "\n")))
        (goto-char (point-min))))
    (pop-to-buffer buffer)))

(provide 'alongside-doctor)
;;; alongside-doctor.el ends here
