;;; alongside-review-view.el --- Show a proposed change  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; An Ediff session for each change that the user opens: the file in buffer
;; A, read-only, and the editable draft in buffer B.  Every edit is sent to
;; the companion, and edits from elsewhere are shown.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-text)

(defvar ediff-after-quit-hook-internal)
(defvar ediff-diff-program)
(defvar ediff-make-buffers-readonly-at-startup)
(defvar ediff-mode-map)
(defvar ediff-number-of-differences)
(defvar ediff-split-window-function)
(defvar ediff-window-setup-function)
(declare-function alongside-accept "alongside-review" (&optional insist))
(declare-function alongside-reject "alongside-review" (&optional reason))
(declare-function alongside-accept-hunk "alongside-review" ())
(declare-function alongside-reject-hunk "alongside-review" ())
(declare-function alongside-review-save "alongside-review" ())
(declare-function ediff-buffers "ediff" (a b &optional hooks job file))
(declare-function ediff-next-difference "ediff-util" (&optional arg))
(declare-function ediff-really-quit "ediff-util" (reverse))
(declare-function ediff-setup-windows-plain "ediff-wind" (a b c control))
(declare-function ediff-update-diffs "ediff-util" ())

(defcustom alongside-review-split-function #'split-window-horizontally
  "How to split the windows for file and draft."
  :type '(choice (const :tag "Side by side" split-window-horizontally)
                 (const :tag "One above the other" split-window-vertically)
                 function)
  :group 'alongside)

(cl-defstruct (alongside-view (:copier nil))
  "The view of a review."
  id path base proposal revision
  (notes nil :documentation "Sentences about invisible changes.")
  (draft nil :documentation "The draft that the companion has.")
  (version nil :documentation "The version of that draft.")
  (file nil :documentation "The buffer with the file.")
  (buffer nil :documentation "The buffer with the draft.")
  (control nil :documentation "Ediff's control buffer.")
  (windows nil :documentation "The window configuration before it was opened.")
  (sharing 0 :documentation "How many edits the companion has not confirmed.")
  (timer nil :documentation "The timer that sends an edit.")
  (closed nil :documentation "Whether it is closed."))

(defvar alongside-review--pending nil
  "An alist of the pending reviews: id and plist, oldest first.")
(defvar alongside-review--shown nil
  "An alist of the open reviews: id and view.")
(defvar-local alongside-review--view nil
  "The view that this buffer belongs to.")
(put 'alongside-review--view 'permanent-local t)

(defun alongside-review-pending ()
  "Return the pending reviews, oldest first: a list of plists."
  (mapcar #'cdr alongside-review--pending))

(defun alongside-review-name (path)
  "Return PATH relative to its workspace folder, or abbreviated."
  (let ((folder (seq-find (lambda (folder)
                            (string-prefix-p (file-name-as-directory folder) path))
                          (plist-get alongside-bridge-welcome :workspace))))
    (if folder
        (file-relative-name path folder)
      (abbreviate-file-name path))))

(defun alongside-review-size (review)
  "Return the size of REVIEW as text."
  (let ((size (plist-get review :size))
        (conflicts (or (plist-get review :conflicts) 0)))
    (format "+%d −%d%s" (plist-get size :added) (plist-get size :removed)
            (if (> conflicts 0) (format ", conflicts: %d" conflicts) ""))))

(defun alongside-review-agent (review)
  "Return the agent of REVIEW with its version."
  (alongside-bridge-agent-name (plist-get review :agent)
                               (plist-get review :agentVersion)))

(defun alongside-review--describe (review)
  "Return a description of REVIEW."
  (format "%s (%s), %s" (alongside-review-name (plist-get review :path))
          (alongside-review-size review) (alongside-review-agent review)))

;;;; Drafts

(defun alongside-review--string (buffer)
  "Return the contents of BUFFER."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun alongside-review--draft (view)
  "Return the draft in VIEW: what would be accepted now."
  (let ((string (alongside-review--string (alongside-view-buffer view))))
    ;; With every hunk rejected, the line endings and the end of the file are
    ;; the file's too.
    (if (and (equal string (alongside-review--string (alongside-view-file view)))
             (not (equal string (car (alongside-text-split
                                      (alongside-view-proposal view))))))
        (alongside-view-base view)
      (or (alongside-text-of (alongside-view-buffer view))
          (user-error "Alongside: the draft has characters that cannot be encoded as UTF-8")))))

(defun alongside-review--cancel-timer (view)
  "Cancel the timer of VIEW."
  (when-let ((timer (alongside-view-timer view)))
    (cancel-timer timer)
    (setf (alongside-view-timer view) nil)))

(defun alongside-review--share (view)
  "Send the draft of VIEW to the companion.
That draft is accepted if the user accepts in the agent's
terminal, and is not lost when the view is closed."
  (alongside-review--cancel-timer view)
  (when (and (not (alongside-view-closed view))
             (zerop (alongside-view-sharing view))
             (buffer-live-p (alongside-view-buffer view)))
    (let ((draft (alongside-review--draft view)))
      (unless (equal draft (alongside-view-draft view))
        (cl-incf (alongside-view-sharing view))
        (alongside-bridge-request
         "review/change"
         (list :review (alongside-view-id view)
               :version (alongside-view-version view)
               :changes (vector (list :from 0
                                      :to (alongside-text-units
                                           (alongside-view-draft view))
                                      :insert draft)))
         (lambda (problem result)
           (cl-decf (alongside-view-sharing view))
           (if problem
               (alongside-review--reload view 'ours)
             (setf (alongside-view-draft view) draft
                   (alongside-view-version view) (plist-get result :version))
             ;; What was typed since then.
             (alongside-review--share view))))))))

(defun alongside-review--share-finally (view)
  "Send the draft of VIEW, which is about to be closed."
  (let ((sharing (> (alongside-view-sharing view) 0)))
    (if (not sharing)
        (alongside-review--share view)
      (alongside-review--cancel-timer view)
      (alongside-bridge-request "review/edit"
                                (list :review (alongside-view-id view)
                                      :content (alongside-review--draft view))
                                #'ignore))))

(defun alongside-review-share-all ()
  "Send every edited draft."
  (pcase-dolist (`(,_ . ,view) alongside-review--shown)
    (alongside-review--share view)))

(defun alongside-review--edited (&rest _)
  "Note that the draft was edited."
  (when-let ((view alongside-review--view))
    (unless (alongside-view-timer view)
      (setf (alongside-view-timer view)
            (run-at-time 0.3 nil #'alongside-review--share view)))))

(defun alongside-review--reload (view &optional ours)
  "Show what was changed in the review of VIEW elsewhere.
If OURS is non-nil, or if the user is editing, the draft in VIEW
stays and is sent again.  But a new revision by the agent
replaces it."
  (alongside-bridge-request
   "review/get" (list :review (alongside-view-id view))
   (lambda (problem review)
     (unless (or problem
                 (alongside-view-closed view)
                 (> (alongside-view-sharing view) 0))
       (let ((ours (or ours (alongside-view-timer view)))
             (revised (not (eql (plist-get review :revision)
                                (alongside-view-revision view)))))
         (when revised
           (alongside-review--cancel-timer view)
           (alongside-message "the agent revised its change to %s"
                          (file-name-nondirectory (alongside-view-path view))))
         (alongside-review--update view review)
         (if (and ours (not revised))
             (alongside-review--share view)
           (alongside-review--put-draft view)))))))

(defun alongside-review--update (view review)
  "Update VIEW to the state of REVIEW, and show the file."
  (let ((base (or (plist-get review :base) "")))
    (setf (alongside-view-revision view) (plist-get review :revision)
          (alongside-view-version view) (plist-get review :version)
          (alongside-view-proposal view) (plist-get review :proposal)
          (alongside-view-draft view) (plist-get review :draft)
          (alongside-view-notes view) (plist-get review :notes))
    (alongside-review--count-conflicts (alongside-view-id view)
                                       (plist-get review :hunks))
    (alongside-review--show-header view)
    (unless (equal base (alongside-view-base view))
      (setf (alongside-view-base view) base)
      (alongside-text-put (alongside-view-file view) base)
      (alongside-review--compare-again view))))

(defun alongside-review--put-draft (view)
  "Show the draft of VIEW unless it is already in its buffer."
  (unless (equal (alongside-view-draft view) (alongside-review--draft view))
    (let ((inhibit-modification-hooks t))
      (alongside-text-put (alongside-view-buffer view) (alongside-view-draft view)))
    (with-current-buffer (alongside-view-buffer view)
      (font-lock-flush))
    (alongside-review--compare-again view)))

(defun alongside-review--conflicts (id)
  "Return the number of conflicts in the review with ID."
  (or (plist-get (alist-get id alongside-review--pending) :conflicts) 0))

(defun alongside-review--count-conflicts (id hunks)
  "Store the number of conflicts in HUNKS of the review with ID."
  (when-let ((known (assq id alongside-review--pending)))
    (setcdr known
            (plist-put (cdr known) :conflicts
                       (seq-count (lambda (hunk)
                                    (equal (plist-get hunk :state) "conflict"))
                                  hunks)))))

(defun alongside-review--show-header (view)
  "Show a header line for VIEW, with its keys and notes."
  (let* ((id (alongside-view-id view))
         (conflicts (alongside-review--conflicts id))
         (parts `(,(alongside-review-agent (alist-get id alongside-review--pending))
                  ,(substitute-command-keys
                    "\\<alongside-draft-mode-map>\\[alongside-accept] to accept, \
\\[alongside-reject] to reject")
                  ,@(when (> conflicts 0)
                      (list (format "conflicts: %d" conflicts)))
                  ,@(alongside-view-notes view))))
    (with-current-buffer (alongside-view-buffer view)
      (setq header-line-format
            (string-replace "%" "%%" (concat " " (string-join (delq nil parts)
                                                              " · ")))))))

(defun alongside-review--compare-again (view)
  "Make Ediff compute the differences of VIEW again."
  (let ((control (alongside-view-control view)))
    (when (buffer-live-p control)
      (save-selected-window
        (with-current-buffer control
          (ignore-errors (ediff-update-diffs)))))))

;;;; Views

(defun alongside-review--new-buffer (view name text)
  "Create a buffer for VIEW with NAME and TEXT, fontified like its file."
  (let ((buffer (generate-new-buffer name))
        (path (alongside-view-path view)))
    (with-current-buffer buffer
      (setq default-directory
            (let ((directory (file-name-directory path)))
              (if (file-directory-p directory) directory temporary-file-directory)))
      (alongside-text-put buffer text)
      (alongside-review--fontify path)
      (setq buffer-undo-list nil)
      (setq-local alongside-review--view view
                  require-final-newline nil
                  backup-inhibited t)
      (auto-save-mode -1)
      (add-hook 'kill-buffer-query-functions #'alongside-review--kill nil t)
      (goto-char (point-min)))
    buffer))

(defun alongside-review--fontify (path)
  "Fontify the current buffer like the file at PATH.
An agent's text must not set modes or variables, and hooks that
start servers for a file must not run."
  (when (< (buffer-size) (* 1024 1024))
    (let ((coding buffer-file-coding-system))
      (ignore-errors
        (delay-mode-hooks
          (let ((buffer-file-name path)
                (enable-local-variables nil)
                (enable-dir-local-variables nil)
                (magic-mode-alist nil))
            (set-auto-mode)))
        (font-lock-mode 1))
      (setq delayed-mode-hooks nil
            buffer-file-coding-system coding)
      (set-buffer-modified-p nil))))

(defun alongside-review--kill ()
  "Close the view of a buffer that is about to be killed.
Ediff cannot quit once one of its buffers is killed."
  (when-let ((view alongside-review--view))
    (unless (alongside-view-closed view)
      (ignore-errors (alongside-review--share-finally view))
      (alongside-review--hide view)
      (alongside-review--message-pending view)))
  t)

(defun alongside-review--message-pending (view)
  "Show that the review of VIEW, which was closed, is still pending."
  (alongside-message "the change to %s is still pending"
                 (file-name-nondirectory (alongside-view-path view))))

(defun alongside-review--quit (view)
  "Clean up after the Ediff session of VIEW."
  (unless (alongside-view-closed view)
    (ignore-errors (alongside-review--share-finally view))
    (alongside-review--remove view)
    (when (window-configuration-p (alongside-view-windows view))
      (set-window-configuration (alongside-view-windows view)))
    (alongside-review--message-pending view)))

(defun alongside-review--remove (view)
  "Forget VIEW and kill its buffers."
  (setf (alongside-view-closed view) t)
  (setq alongside-review--shown
        (assq-delete-all (alongside-view-id view) alongside-review--shown))
  (alongside-review--cancel-timer view)
  (dolist (buffer (list (alongside-view-buffer view) (alongside-view-file view)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (set-buffer-modified-p nil))
      (kill-buffer buffer))))

(defun alongside-review--hide (view)
  "Close VIEW without moving the user."
  (cond
   ((alongside-view-closed view))
   ;; Do not move windows while the minibuffer asks something.
   ((active-minibuffer-window)
    (run-at-time 0.2 nil #'alongside-review--hide view))
   (t
    (let* ((control (alongside-view-control view))
           (buffers (list control (alongside-view-buffer view)
                          (alongside-view-file view)))
           (inside (memq (window-buffer (selected-window)) buffers))
           (windows (if inside
                        (alongside-view-windows view)
                      (dolist (buffer (delq nil buffers))
                        (when (buffer-live-p buffer)
                          (dolist (window (get-buffer-window-list buffer nil t))
                            (ignore-errors (delete-window window)))))
                      (current-window-configuration))))
      (setf (alongside-view-closed view) t)
      (when (buffer-live-p control)
        (with-current-buffer control
          (ignore-errors (ediff-really-quit nil)))
        (when (buffer-live-p control)
          (kill-buffer control)))
      (alongside-review--remove view)
      (when (and (window-configuration-p windows)
                 (frame-live-p (window-configuration-frame windows)))
        (set-window-configuration windows))))))

(defvar alongside-draft-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'alongside-accept)
    (define-key map (kbd "C-c C-k") #'alongside-reject)
    (define-key map (kbd "C-c C-a") #'alongside-accept-hunk)
    (define-key map (kbd "C-c C-r") #'alongside-reject-hunk)
    (define-key map [remap save-buffer] #'alongside-review-save)
    map)
  "Keymap of `alongside-draft-mode'.")

(define-minor-mode alongside-draft-mode
  "Minor mode for the buffers of a proposed change.
\\<alongside-draft-mode-map>\\[alongside-accept] accepts the change as it is \
in the buffer, \\[alongside-reject] rejects
it; \\[alongside-accept-hunk] and \\[alongside-reject-hunk] do so with the hunk at point."
  :lighter " Draft"
  :keymap alongside-draft-mode-map)

(defun alongside-review--control-keys ()
  "Add the keys of a review to Ediff's control buffer."
  (dolist (key '("C-c C-c" "C-c C-k" "C-c C-a" "C-c C-r"))
    (define-key ediff-mode-map (kbd key)
      (lookup-key alongside-draft-mode-map (kbd key))))
  (define-key ediff-mode-map "y" #'alongside-accept-hunk)
  (define-key ediff-mode-map "k" #'alongside-reject-hunk))

(defun alongside-review--show (review)
  "Show REVIEW, a plist with its texts."
  (require 'ediff)
  (unless (executable-find ediff-diff-program)
    (user-error "Alongside: Ediff requires the program `%s'" ediff-diff-program))
  (let* ((id (plist-get review :id))
         (path (plist-get review :path))
         (view (make-alongside-view
                :id id :path path
                :base (or (plist-get review :base) "")
                :proposal (plist-get review :proposal)
                :draft (plist-get review :draft)
                :revision (plist-get review :revision)
                :version (plist-get review :version)
                :notes (plist-get review :notes)
                :windows (current-window-configuration)))
         (name (file-name-nondirectory path))
         (ediff-make-buffers-readonly-at-startup nil)
         (ediff-split-window-function alongside-review-split-function)
         ;; The same on every display, without a frame that steals the focus.
         (ediff-window-setup-function #'ediff-setup-windows-plain))
    (setf (alongside-view-file view)
          (alongside-review--new-buffer view (format "*file: %s*" name)
                                        (alongside-view-base view))
          (alongside-view-buffer view)
          (alongside-review--new-buffer view (format "*draft: %s*" name)
                                        (alongside-view-draft view)))
    (with-current-buffer (alongside-view-file view)
      (setq buffer-read-only t)
      (alongside-draft-mode 1))
    (with-current-buffer (alongside-view-buffer view)
      (add-hook 'after-change-functions #'alongside-review--edited nil t)
      (alongside-draft-mode 1))
    (alongside-review--show-header view)
    (push (cons id view) alongside-review--shown)
    (ediff-buffers
     (alongside-view-file view) (alongside-view-buffer view)
     (list (lambda ()
             (setf (alongside-view-control view) (current-buffer))
             (setq-local alongside-review--view view)
             (alongside-review--control-keys)
             (add-hook 'ediff-after-quit-hook-internal
                       (lambda () (alongside-review--quit view)) nil t)
             (when (> ediff-number-of-differences 0)
               (ediff-next-difference)))))))

(provide 'alongside-review-view)
;;; alongside-review-view.el ends here
