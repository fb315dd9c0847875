;;; alongside-context.el --- Report the context to agents  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Reports open files, the focused file, its cursor and region, and unsaved
;; text.  Hooks only note that something happened; a timer reports the last
;; state once, so that typing never waits.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-text)

(declare-function evil-visual-range "evil-states" ())
(declare-function extract-rectangle "rect" (start end))

(defconst alongside-context--max-selection-bytes (* 16 1024)
  "What agents see of a selection at most; the companion has the same limit.")

(defconst alongside-context--max-buffer-bytes (* 8 1024 1024)
  "Larger buffers are not sent: Emacs would stop responding for too long.")

(defconst alongside-context--large-chars (* 512 1024)
  "Larger unsaved texts are reported only while Emacs is idle.")

(defvar-local alongside-context--path nil
  "The path that this buffer was reported as open with.")
(put 'alongside-context--path 'permanent-local t)

(defvar-local alongside-context--tick nil
  "The modification count of the reported unsaved text, or nil.")
(put 'alongside-context--tick 'permanent-local t)

(defvar-local alongside-context--too-large nil
  "Whether the user knows that this buffer is too large to send.")
(put 'alongside-context--too-large 'permanent-local t)

(defvar alongside-context--warned-of-selection nil
  "Whether the user knows that a selection was too long to send.")

(defvar alongside-context--focused nil
  "The buffer of the focused file.")
(defvar alongside-context--reported nil
  "What was reported about the focused file.")
(defvar alongside-context--timers nil
  "An alist of what will be reported soon: a key and its timer.")

(defun alongside-context--path-of (buffer)
  "Return the path of the file in BUFFER, or nil.
Remote files and internal buffers have none."
  (let ((name (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (and name
         (not (file-remote-p name))
         (not (string-prefix-p " " (buffer-name buffer)))
         (expand-file-name (file-name-unquote name)))))

(defun alongside-context--soon (key seconds action &optional idle)
  "Call ACTION once, SECONDS after the first event of KEY in a burst.
If IDLE is non-nil, wait until Emacs was idle for that long."
  (unless (assoc key alongside-context--timers)
    (push (cons key
                (funcall
                 (if idle #'run-with-idle-timer #'run-at-time)
                 seconds nil
                 (lambda ()
                   (setq alongside-context--timers
                         (assoc-delete-all key alongside-context--timers))
                   (funcall action))))
          alongside-context--timers)))

(defun alongside-context-reported-p ()
  "Return non-nil if everything that happened was reported."
  (null alongside-context--timers))

;;;; The focused file

(defun alongside-context--region ()
  "Return the selection as (START END), (START END block), or nil."
  (cond
   ;; Evil's region ends before the character under the cursor.
   ((and (eq (bound-and-true-p evil-state) 'visual) (fboundp 'evil-visual-range))
    (pcase-let ((`(,start ,end ,type . ,_) (evil-visual-range)))
      `(,start ,end ,@(and (eq type 'block) '(block)))))
   ((use-region-p)
    `(,(region-beginning) ,(region-end)
      ,@(and (bound-and-true-p rectangle-mark-mode) '(block))))))

(defun alongside-context--selection ()
  "Return the selected text, or nil."
  (when-let ((text
              (pcase (alongside-context--region)
                (`(,start ,end block)
                 (mapconcat #'substring-no-properties
                            (extract-rectangle start end) "\n"))
                (`(,start ,end)
                 ;; A character has at least a byte.
                 (buffer-substring-no-properties
                  start
                  (min end (+ start 1 alongside-context--max-selection-bytes)))))))
    (let ((cut (alongside-text-truncate
                text alongside-context--max-selection-bytes)))
      (unless (or (eq cut text) alongside-context--warned-of-selection)
        (setq alongside-context--warned-of-selection t)
        (alongside-message
         "the selection is longer than 16 KiB; agents see its first 16 KiB"))
      cut)))

(defun alongside-context--position (place)
  "Return the line and character at PLACE, both from 1."
  (save-excursion
    (goto-char place)
    (list :line (line-number-at-pos)
          :character (1+ (alongside-text-units
                          (buffer-substring-no-properties
                           (line-beginning-position) place))))))

(defun alongside-context--report-focus ()
  "Report the focused file, its cursor and its region."
  (when (buffer-live-p alongside-context--focused)
    (with-current-buffer alongside-context--focused
      (when-let ((path (alongside-context--path-of (current-buffer))))
        (let* ((window (selected-window))
               (point (if (eq (window-buffer window) (current-buffer))
                          (window-point window)
                        (point)))
               (selection (alongside-context--selection))
               (start (and selection (nth 0 (alongside-context--region))))
               (state (list path point selection start
                            (buffer-chars-modified-tick))))
          (unless (equal state alongside-context--reported)
            (setq alongside-context--reported state)
            (save-excursion
              (save-restriction
                (widen)
                (alongside-bridge-notify
                 "context/focus"
                 :path path
                 :cursor (alongside-context--position point)
                 :selectedText selection
                 :selectionStart
                 (and start (alongside-context--position start)))))))))))

;;;###autoload
(defun alongside-send-selection ()
  "Put the region, or the whole file, into an agent's prompt.
It goes to the agent that was used last.  Claude Code, Copilot
CLI and opencode have such a prompt."
  (interactive)
  (unless (alongside-context--path-of (current-buffer))
    (user-error "This buffer has no file to send"))
  (setq alongside-context--focused (current-buffer)
        alongside-context--reported nil)
  (alongside-context--report-focus)
  (alongside-bridge-request
   "agent/mention" nil
   (lambda (err sent)
     (message "Alongside: %s"
              (if err
                  (plist-get err :message)
                (format "sent to %s"
                        (plist-get (plist-get sent :agent) :name)))))))

(defun alongside-context--look (&rest _)
  "Note what has the focus.
In a buffer without a file, such as a terminal or the minibuffer,
the last file and its region stay, and only the use of this Emacs
is reported: agents started elsewhere connect to the most
recently used editor."
  (let ((buffer (window-buffer (selected-window))))
    (if (not (buffer-file-name (or (buffer-base-buffer buffer) buffer)))
        (alongside-context--soon
         'window 0.02 (lambda () (alongside-bridge-notify "window/focus")))
      (setq alongside-context--focused buffer)
      (alongside-context--soon 'focus 0.02 #'alongside-context--report-focus))))

;;;; Open files

(defun alongside-context--open (&optional buffer)
  "Report BUFFER, or the current one, as open if it visits a file."
  (with-current-buffer (or buffer (current-buffer))
    (let ((path (alongside-context--path-of (current-buffer))))
      (unless (equal path alongside-context--path)
        (alongside-context--close)
        (setq alongside-context--path path)
        (when path
          (alongside-bridge-notify "context/open" :path path)
          (alongside-context--soon
           'move 0.1 (lambda () (alongside-bridge-opened path))))))))

(defun alongside-context--close ()
  "Report the current buffer's file as closed, unless another buffer visits it."
  (when-let ((path alongside-context--path))
    (setq alongside-context--path nil)
    (when alongside-context--tick
      (setq alongside-context--tick nil)
      (alongside-bridge-notify "context/buffer" :path path))
    (unless (seq-some (lambda (buffer)
                        (equal path (buffer-local-value
                                     'alongside-context--path buffer)))
                      (buffer-list))
      (alongside-bridge-notify "context/close" :path path)
      (when (equal path (car alongside-context--reported))
        (setq alongside-context--reported nil)))))

;;;; Unsaved text

(defun alongside-context--too-large-p (path)
  "Return non-nil if the current buffer is too large to send.
Tell the user so once, with PATH."
  (when (> (save-restriction (widen) (position-bytes (point-max)))
           alongside-context--max-buffer-bytes)
    (unless alongside-context--too-large
      (setq alongside-context--too-large t)
      (alongside-message
       "%s is larger than 8 MiB; changes to it are compared with the file \
on disk, not with your unsaved edits" (abbreviate-file-name path)))
    t))

(defun alongside-context--report-unsaved (buffer)
  "Report the unsaved text of BUFFER, or that there is none."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when-let ((path alongside-context--path))
        (let* ((tick (buffer-chars-modified-tick))
               (text (and (buffer-modified-p)
                          (not (alongside-context--too-large-p path))
                          (not (eql tick alongside-context--tick))
                          (alongside-text-of buffer))))
          (cond (text
                 (setq alongside-context--tick tick)
                 (alongside-bridge-notify "context/buffer" :path path :text text))
                ((and alongside-context--tick
                      (not (and (buffer-modified-p)
                                (eql tick alongside-context--tick))))
                 (setq alongside-context--tick nil)
                 (alongside-bridge-notify "context/buffer" :path path))))))))

(defun alongside-context--touch (&rest _)
  "Note that the current buffer may have unsaved text now."
  (when alongside-context--path
    (let ((buffer (current-buffer))
          (large (> (buffer-size) alongside-context--large-chars)))
      (alongside-context--soon
       buffer (if large 1 0.1)
       (lambda () (alongside-context--report-unsaved buffer))
       large))))

(defun alongside-context--saved ()
  "Note that the current buffer was saved, perhaps for the first time."
  (alongside-context--open)
  (alongside-context--touch)
  (alongside-context--look))

;;;; Start and stop

(defconst alongside-context--hooks
  '((find-file-hook . alongside-context--open)
    (after-set-visited-file-name-hook . alongside-context--open)
    (clone-indirect-buffer-hook . alongside-context--open)
    (kill-buffer-hook . alongside-context--close)
    (after-change-functions . alongside-context--touch)
    (after-save-hook . alongside-context--saved)
    (after-revert-hook . alongside-context--saved)
    (post-command-hook . alongside-context--look)
    (window-selection-change-functions . alongside-context--look)
    (window-buffer-change-functions . alongside-context--look))
  "Hooks, and what is called from them.")

(defun alongside-context-start ()
  "Report everything, then every change."
  (alongside-context-stop)
  (pcase-dolist (`(,hook . ,function) alongside-context--hooks)
    (add-hook hook function))
  ;; The most recently used one last, which makes it the first for agents.
  (dolist (buffer (reverse (buffer-list)))
    (alongside-context--open buffer)
    (with-current-buffer buffer
      (when (and alongside-context--path (buffer-modified-p))
        (alongside-context--touch))))
  (alongside-context--look))

(defun alongside-context-stop ()
  "Stop reporting."
  (pcase-dolist (`(,hook . ,function) alongside-context--hooks)
    (remove-hook hook function))
  (pcase-dolist (`(,_ . ,timer) alongside-context--timers)
    (cancel-timer timer))
  (setq alongside-context--timers nil
        alongside-context--reported nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'alongside-context--path)
      (kill-local-variable 'alongside-context--tick))))

;;;; Files that an agent wants to show

(alongside-bridge-on
 "file/show"
 (lambda (target)
   ;; In another window; the selected one stays.
   (let* ((buffer (find-file-noselect (plist-get target :path) t))
          (window (display-buffer buffer '(nil (inhibit-same-window . t))))
          (line (plist-get target :line)))
     (when (and line window (not (eq window (selected-window))))
       (with-current-buffer buffer
         (save-restriction
           (widen)
           (set-window-point
            window
            (save-excursion
              (goto-char (point-min))
              (forward-line (1- line))
              (point)))))))))

(provide 'alongside-context)
;;; alongside-context.el ends here
