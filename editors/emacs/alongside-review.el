;;; alongside-review.el --- Reviewing what agents propose  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The changes that wait, and an Ediff session for each that the person
;; opens: the file in buffer A, read-only, and the proposal in buffer B, to
;; be edited as one likes.  Nothing opens by itself, nothing is decided by
;; closing a view, and what was edited is kept by the companion.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-text)

(defvar ediff-after-quit-hook-internal)
(defvar ediff-control-buffer)
(defvar ediff-current-difference)
(defvar ediff-diff-program)
(defvar ediff-killed-diffs-alist)
(defvar ediff-make-buffers-readonly-at-startup)
(defvar ediff-mode-map)
(defvar ediff-number-of-differences)
(defvar ediff-split-window-function)
(declare-function ediff-buffers "ediff" (a b &optional hooks job file))
(declare-function ediff-copy-A-to-B "ediff-util" (arg))
(declare-function ediff-diff-at-point "ediff-util" (type &optional pos which))
(declare-function ediff-jump-to-difference "ediff-util" (number))
(declare-function ediff-next-difference "ediff-util" (&optional arg))
(declare-function ediff-really-quit "ediff-util" (reverse))
(declare-function ediff-restore-diff "ediff-util" (arg &optional key))
(declare-function ediff-update-diffs "ediff-util" ())
(declare-function alongside-list-reviews "alongside-list" ())

(defcustom alongside-review-split-function #'split-window-horizontally
  "How the windows of file and proposal are made: beside or below each other."
  :type '(choice (const :tag "Beside each other" split-window-horizontally)
                 (const :tag "Below each other" split-window-vertically)
                 function)
  :group 'alongside)

(defcustom alongside-review-revert t
  "Whether buffers show what an agent has written after a change was accepted.
Only those without unsaved changes."
  :type 'boolean
  :group 'alongside)

(cl-defstruct (alongside-view (:copier nil))
  "How a review is shown."
  id path base proposal
  (draft nil :documentation "What the companion has as the draft.")
  (file nil :documentation "The buffer of the file.")
  (buffer nil :documentation "The buffer of the proposal.")
  (control nil :documentation "Ediff's control buffer.")
  (windows nil :documentation "The windows before it was opened.")
  (sharing 0 :documentation "How many edits the companion has not confirmed.")
  (timer nil :documentation "Runs while an edit is to be shared soon.")
  (over nil :documentation "Whether it is closed."))

(defvar alongside-review--waiting nil
  "An alist of the reviews that wait: number and plist, oldest first.")
(defvar alongside-review--shown nil
  "An alist of the reviews that are shown: number and view.")
(defvar-local alongside-review--view nil
  "The view that this buffer is part of.")
(put 'alongside-review--view 'permanent-local t)

(defun alongside-review-waiting ()
  "Return the reviews that wait, oldest first: a list of plists."
  (mapcar #'cdr alongside-review--waiting))

(defun alongside-review-name (path)
  "Return PATH as short as it is clear: below a folder of the workspace."
  (let ((folder (seq-find (lambda (folder)
                            (string-prefix-p (file-name-as-directory folder) path))
                          (plist-get alongside-bridge-welcome :workspace))))
    (if folder
        (file-relative-name path folder)
      (abbreviate-file-name path))))

(defun alongside-review-size (review)
  "Return the size of REVIEW in words."
  (let ((size (plist-get review :size))
        (conflicts (or (plist-get review :conflicts) 0)))
    (format "+%d −%d%s" (plist-get size :added) (plist-get size :removed)
            (if (> conflicts 0) (format ", in conflict: %d" conflicts) ""))))

(defun alongside-review--describe (review)
  "Return what REVIEW is, in words."
  (format "%s (%s), %s" (alongside-review-name (plist-get review :path))
          (alongside-review-size review) (plist-get review :agent)))

;;;; Drafts

(defun alongside-review--string (buffer)
  "Return what is in BUFFER."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun alongside-review--draft (view)
  "Return what would be accepted now in VIEW."
  (let ((string (alongside-review--string (alongside-view-buffer view))))
    ;; All hunks are rejected: then the ends of lines and of the file are the
    ;; file's too.
    (if (and (equal string (car (alongside-text-split (alongside-view-base view))))
             (not (equal string (car (alongside-text-split
                                      (alongside-view-proposal view))))))
        (alongside-view-base view)
      (or (alongside-text-of (alongside-view-buffer view))
          (user-error "Alongside: the proposal has characters that no file in UTF-8 can have")))))

(defun alongside-review--share (view)
  "Let the companion know the draft of VIEW.
So it counts when the person says yes in the agent's terminal,
and is not lost when the view is closed."
  (when-let ((timer (alongside-view-timer view)))
    (cancel-timer timer)
    (setf (alongside-view-timer view) nil))
  (when (and (not (alongside-view-over view))
             (buffer-live-p (alongside-view-buffer view)))
    (let ((draft (alongside-review--draft view)))
      (unless (equal draft (alongside-view-draft view))
        (setf (alongside-view-draft view) draft)
        (cl-incf (alongside-view-sharing view))
        (alongside-bridge-request
         "review/edit" (list :review (alongside-view-id view) :content draft)
         (lambda (_ _)
           (cl-decf (alongside-view-sharing view))))))))

(defun alongside-review--edited (&rest _)
  "Note that the proposal was edited."
  (when-let ((view alongside-review--view))
    (unless (alongside-view-timer view)
      (setf (alongside-view-timer view)
            (run-at-time 0.3 nil #'alongside-review--share view)))))

(defun alongside-review--reload (view)
  "Take in what somebody else did to the review of VIEW."
  (alongside-bridge-request
   "review/get" (list :review (alongside-view-id view))
   (lambda (problem review)
     (unless (or problem
                 (alongside-view-over view)
                 ;; What the person does here now comes after that.
                 (alongside-view-timer view)
                 (> (alongside-view-sharing view) 0))
       (let ((base (or (plist-get review :base) ""))
             (draft (plist-get review :draft)))
         (setf (alongside-view-proposal view) (plist-get review :proposal))
         (unless (and (equal base (alongside-view-base view))
                      (equal draft (alongside-view-draft view)))
           (setf (alongside-view-base view) base
                 (alongside-view-draft view) draft)
           (alongside-text-put (alongside-view-file view) base)
           (let ((inhibit-modification-hooks t))
             (alongside-text-put (alongside-view-buffer view) draft))
           (alongside-review--compare-again view)))))))

(defun alongside-review--compare-again (view)
  "Let Ediff find the differences of VIEW again."
  (let ((control (alongside-view-control view)))
    (when (buffer-live-p control)
      (save-selected-window
        (with-current-buffer control
          (ignore-errors (ediff-update-diffs)))))))

;;;; Views

(defun alongside-review--new-buffer (view name text)
  "Make a buffer for VIEW with NAME and TEXT, fontified like its file."
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
      (add-hook 'kill-buffer-hook #'alongside-review--buffer-killed nil t)
      (goto-char (point-min)))
    buffer))

(defun alongside-review--fontify (path)
  "Show the current buffer as a file at PATH is shown.
An agent's text says nothing about modes and variables, and hooks
that start servers for a file do not run."
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

(defun alongside-review--buffer-killed ()
  "Close the view of a buffer that is killed."
  (when-let ((view alongside-review--view))
    (unless (alongside-view-over view)
      (ignore-errors (alongside-review--share view))
      (run-at-time 0 nil #'alongside-review--hide view))))

(defun alongside-review--quit (view)
  "Tidy up after the Ediff session of VIEW has ended."
  (unless (alongside-view-over view)
    (ignore-errors (alongside-review--share view))
    (alongside-review--remove view)
    (when (window-configuration-p (alongside-view-windows view))
      (set-window-configuration (alongside-view-windows view)))
    (alongside-say "the change to %s still waits"
                   (file-name-nondirectory (alongside-view-path view)))))

(defun alongside-review--remove (view)
  "Forget VIEW and kill its buffers."
  (setf (alongside-view-over view) t)
  (setq alongside-review--shown
        (assq-delete-all (alongside-view-id view) alongside-review--shown))
  (when (timerp (alongside-view-timer view))
    (cancel-timer (alongside-view-timer view)))
  (dolist (buffer (list (alongside-view-buffer view) (alongside-view-file view)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (set-buffer-modified-p nil))
      (kill-buffer buffer))))

(defun alongside-review--hide (view)
  "Close VIEW, and leave the person where the person is."
  (cond
   ((alongside-view-over view))
   ;; Windows do not move under a question that is being answered.
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
      (setf (alongside-view-over view) t)
      (when (buffer-live-p control)
        (with-current-buffer control
          (ignore-errors (ediff-really-quit nil))))
      (alongside-review--remove view)
      (when (and (window-configuration-p windows)
                 (frame-live-p (window-configuration-frame windows)))
        (set-window-configuration windows))))))

(defvar alongside-proposal-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'alongside-accept)
    (define-key map (kbd "C-c C-k") #'alongside-reject)
    (define-key map (kbd "C-c C-a") #'alongside-accept-hunk)
    (define-key map (kbd "C-c C-r") #'alongside-reject-hunk)
    (define-key map [remap save-buffer] #'alongside-accept)
    map)
  "Keys in the buffers of a proposed change.")

(define-minor-mode alongside-proposal-mode
  "Minor mode of the buffers of a change that an agent proposes.
\\<alongside-proposal-mode-map>\\[alongside-accept] accepts the change as it is \
in the buffer, \\[alongside-reject] rejects
it; \\[alongside-accept-hunk] and \\[alongside-reject-hunk] do so with the hunk at point."
  :lighter " Proposal"
  :keymap alongside-proposal-mode-map)

(defun alongside-review--control-keys ()
  "Add the keys of a review to those of Ediff in its control buffer."
  (dolist (key '("C-c C-c" "C-c C-k" "C-c C-a" "C-c C-r"))
    (define-key ediff-mode-map (kbd key)
      (lookup-key alongside-proposal-mode-map (kbd key))))
  (define-key ediff-mode-map "y" #'alongside-accept-hunk)
  (define-key ediff-mode-map "k" #'alongside-reject-hunk))

(defun alongside-review--show (review)
  "Show REVIEW, a plist with its texts."
  (require 'ediff)
  (unless (executable-find ediff-diff-program)
    (user-error "Alongside: Ediff needs the program `%s'" ediff-diff-program))
  (let* ((id (plist-get review :id))
         (path (plist-get review :path))
         (view (make-alongside-view
                :id id :path path
                :base (or (plist-get review :base) "")
                :proposal (plist-get review :proposal)
                :draft (plist-get review :draft)
                :windows (current-window-configuration)))
         (name (file-name-nondirectory path))
         (ediff-make-buffers-readonly-at-startup nil)
         (ediff-split-window-function alongside-review-split-function))
    (setf (alongside-view-file view)
          (alongside-review--new-buffer view (format "*file: %s*" name)
                                        (alongside-view-base view))
          (alongside-view-buffer view)
          (alongside-review--new-buffer view (format "*proposal: %s*" name)
                                        (alongside-view-draft view)))
    (with-current-buffer (alongside-view-file view)
      (setq buffer-read-only t)
      (alongside-proposal-mode 1))
    (with-current-buffer (alongside-view-buffer view)
      (add-hook 'after-change-functions #'alongside-review--edited nil t)
      (alongside-proposal-mode 1))
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
               (ediff-next-difference)))))
    (dolist (note (plist-get review :notes))
      (alongside-say "%s" note))))

(defun alongside-review-open (id)
  "Show the review with number ID."
  (let ((view (alist-get id alongside-review--shown)))
    (if (not view)
        (alongside-review--show (alongside-bridge-ask "review/get" :review id))
      (pop-to-buffer (alongside-view-buffer view)))))

;;;###autoload
(defun alongside-review (&optional list)
  "Show the change that waits.
If there are several, or with prefix argument LIST, show a list
of them."
  (interactive "P")
  (let ((waiting (alongside-review-waiting)))
    (cond ((or list (cdr waiting))
           (require 'alongside-list)
           (alongside-list-reviews))
          (waiting (alongside-review-open (plist-get (car waiting) :id)))
          (t (alongside-say "no change waits")))))

;;;; Decisions

(defun alongside-review--here ()
  "Return the view that this buffer is part of, or the only one."
  (or alongside-review--view
      (and (null (cdr alongside-review--shown))
           (cdar alongside-review--shown))
      (user-error "Alongside: no change is shown here; %s shows one"
                  (substitute-command-keys "\\[alongside-review]"))))

(defun alongside-review--decide (method &rest parameters)
  "Decide a review by METHOD with PARAMETERS, and say what is wrong with it."
  (alongside-bridge-request
   method parameters
   (lambda (problem _)
     (when problem
       (alongside-say
        "%s%s" (plist-get problem :message)
        (if (equal (plist-get (plist-get problem :data) :kind) "emptyMeansUnedited")
            (substitute-command-keys "; C-u \\[alongside-accept] insists")
          ""))))))

(defun alongside-accept (&optional insist)
  "Accept the change that is shown here, as it is in its buffer.
With prefix argument INSIST even if you have emptied it, which
agents take as \"nothing was edited\"."
  (interactive "P")
  (let* ((view (alongside-review--here))
         (id (alongside-view-id view))
         (review (alist-get id alongside-review--waiting))
         (conflicts (or (plist-get review :conflicts) 0)))
    (when (or (zerop conflicts)
              (y-or-n-p (format "The file changed at %d of the same places.  \
Accept exactly what is in the buffer? " conflicts)))
      (alongside-review--decide "review/accept" :review id
                                :content (alongside-review--draft view)
                                :evenIfEmpty (and insist t)))))

(defun alongside-reject ()
  "Reject the change that is shown here."
  (interactive)
  (alongside-review--decide "review/reject"
                            :review (alongside-view-id (alongside-review--here))))

(defun alongside-review--settle-hunk (settle)
  "Call SETTLE in Ediff's control buffer for a hunk, and go to the next.
It is the one at point in a buffer of the change, and the current
one in the control buffer."
  (let* ((view (alongside-review--here))
         (control (alongside-view-control view))
         (origin (selected-window))
         (position (and (eq (current-buffer) (alongside-view-buffer view))
                        (point)))
         (window (get-buffer-window control t)))
    (unless (buffer-live-p control)
      (user-error "Alongside: this view is closed"))
    (when window
      (select-window window))
    (with-current-buffer control
      (when (zerop ediff-number-of-differences)
        (user-error "Alongside: file and proposal do not differ in any line"))
      (when (or position (< ediff-current-difference 0))
        (ediff-jump-to-difference
         (min (max 1 (if position (ediff-diff-at-point 'B position) 1))
              ediff-number-of-differences)))
      (funcall settle)
      (when (< ediff-current-difference (1- ediff-number-of-differences))
        (ediff-next-difference)))
    (when (window-live-p origin)
      (select-window origin))))

(defun alongside-accept-hunk ()
  "Accept this hunk, also if it was rejected before, and go to the next."
  (interactive)
  (alongside-review--settle-hunk
   (lambda ()
     (when (assoc ediff-current-difference ediff-killed-diffs-alist)
       (ediff-restore-diff nil ?b)))))

(defun alongside-reject-hunk ()
  "Reject this hunk, taking the file's text, and go to the next."
  (interactive)
  (alongside-review--settle-hunk (lambda () (ediff-copy-A-to-B nil))))

;;;; What the companion says

(defun alongside-review-refresh ()
  "Ask again for all that waits.
After a restart, and when notifications were missed."
  (alongside-bridge-request
   "review/list" nil
   (lambda (problem list)
     (unless problem
       (setq alongside-review--waiting
             (mapcar (lambda (review) (cons (plist-get review :id) review)) list))
       (pcase-dolist (`(,id . ,view) alongside-review--shown)
         (if (assq id alongside-review--waiting)
             (alongside-review--reload view)
           (run-at-time 0 nil #'alongside-review--hide view)))
       (alongside-bridge--changed)))))

(defun alongside-review--remember (review)
  "Remember REVIEW, a new one or a new state of one."
  (let* ((id (plist-get review :id))
         (known (assq id alongside-review--waiting)))
    (if known
        (setcdr known review)
      (setq alongside-review--waiting
            (append alongside-review--waiting (list (cons id review)))))
    (alongside-bridge--changed)))

(defun alongside-review--revert-soon (path)
  "Show what the agent writes to PATH, once it has, where nothing is unsaved."
  (when-let ((buffer (and alongside-review-revert (get-file-buffer path))))
    (let ((rest 40) timer)
      (setq timer
            (run-at-time
             0.25 0.25
             (lambda ()
               (setq rest (1- rest))
               (cond ((or (< rest 0)
                          (not (buffer-live-p buffer))
                          (buffer-modified-p buffer))
                      (cancel-timer timer))
                     ((and (file-readable-p path)
                           (not (verify-visited-file-modtime buffer)))
                      (cancel-timer timer)
                      (with-current-buffer buffer
                        (let ((inhibit-message t))
                          (revert-buffer t t t)))))))))))

(defun alongside-review--closed (parameters)
  "Take in that a review is over; PARAMETERS say how."
  (let* ((id (plist-get parameters :review))
         (path (plist-get parameters :path))
         (outcome (plist-get parameters :outcome))
         (view (alist-get id alongside-review--shown)))
    (setq alongside-review--waiting
          (assq-delete-all id alongside-review--waiting))
    (when view
      ;; Not while Emacs is in the middle of something.
      (run-at-time 0 nil #'alongside-review--hide view))
    (when (equal outcome "accepted")
      (alongside-review--revert-soon path))
    (alongside-say "%s: %s" (alongside-review-name path)
                   (pcase outcome
                     ("closedByAgent" "decided in the terminal")
                     ("orphaned" "its agent has gone away")
                     ("shutDown" "rejected, because the companion ended")
                     (_ outcome)))
    (alongside-bridge--changed)))

(defun alongside-review-listen ()
  "Hear of reviews."
  (alongside-bridge-on
   "review/opened"
   (lambda (review)
     (alongside-review--remember review)
     (alongside-say "%s: %s shows it" (alongside-review--describe review)
                    (substitute-command-keys "\\[alongside-review]"))))
  (alongside-bridge-on
   "review/changed"
   (lambda (review)
     (alongside-review--remember review)
     (when-let ((view (alist-get (plist-get review :id) alongside-review--shown)))
       (alongside-review--reload view))))
  (alongside-bridge-on
   "review/edited"
   (lambda (parameters)
     (when-let ((view (alist-get (plist-get parameters :review)
                                 alongside-review--shown)))
       (alongside-review--reload view))))
  (alongside-bridge-on
   "review/rebased"
   (lambda (parameters)
     (when (> (plist-get parameters :conflicts) 0)
       (alongside-say "the file changed where an agent wants to change it; \
look at the proposal again"))))
  (alongside-bridge-on "review/closed" #'alongside-review--closed)
  (alongside-bridge-on "resync" (lambda (_) (alongside-review-refresh))))

(defun alongside-review-forget ()
  "Close every view and forget what waits."
  (setq alongside-review--waiting nil)
  (pcase-dolist (`(,_ . ,view) alongside-review--shown)
    (alongside-review--hide view)))

(provide 'alongside-review)
;;; alongside-review.el ends here
