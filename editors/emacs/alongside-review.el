;;; alongside-review.el --- Review proposed changes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The pending changes, and the commands that decide them.  Closing a view
;; decides nothing, and the companion keeps your edits.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-preview)
(require 'alongside-review-view)

(defvar ediff-current-difference)
(defvar ediff-killed-diffs-alist)
(defvar ediff-number-of-differences)
(declare-function ediff-copy-A-to-B "ediff-util" (arg))
(declare-function ediff-diff-at-point "ediff-util" (type &optional pos which))
(declare-function ediff-jump-to-difference "ediff-util" (number))
(declare-function ediff-next-difference "ediff-util" (&optional arg))
(declare-function ediff-recenter "ediff-util" (&optional no-rehighlight))
(declare-function ediff-restore-diff "ediff-util" (arg &optional key))
(declare-function alongside-list-reviews "alongside-list" ())

(defcustom alongside-review-revert t
  "Whether to revert buffers after an agent writes an accepted change.
Only those without unsaved changes."
  :type 'boolean
  :group 'alongside)

(defun alongside-review-open (id)
  "Show the review with ID."
  (alongside-preview-close)
  (let ((view (alist-get id alongside-review--shown)))
    (if (not view)
        (alongside-review--show (alongside-bridge-ask "review/get" :review id))
      (let ((control (alongside-view-control view)))
        (unless (and (get-buffer-window control)
                     (get-buffer-window (alongside-view-buffer view)))
          (setf (alongside-view-windows view) (current-window-configuration))
          (with-current-buffer control
            (ediff-recenter)))
        (select-window (get-buffer-window control))))))

;;;###autoload
(defun alongside-review (&optional list)
  "Show the pending change.
If there are several, or with prefix argument LIST, show a list
of them."
  (interactive "P")
  (let ((pending (alongside-review-pending)))
    (cond ((or list (cdr pending))
           (require 'alongside-list)
           (alongside-list-reviews))
          (pending (alongside-review-open (plist-get (car pending) :id)))
          (t (alongside-message "no pending changes")))))

;;;###autoload
(defun alongside-review-next ()
  "Show the open change, the one to the side or the oldest pending one.
In a review, show the next pending change."
  (interactive)
  (let* ((pending (mapcar #'car alongside-review--pending))
         (here (and alongside-review--view (alongside-view-id alongside-review--view)))
         (next (if here
                   (or (seq-find (lambda (id) (> id here)) pending) (car pending))
                 (or (caar alongside-review--shown)
                     (alongside-preview-id)
                     (car pending)))))
    (cond ((null next) (alongside-message "no pending changes"))
          ((eql next here) (alongside-message "no other pending changes"))
          (t (alongside-review-open next)))))

;;;; Decisions

(defun alongside-review--here ()
  "Return the view of this buffer, or the only one."
  (or alongside-review--view
      (and (null (cdr alongside-review--shown))
           (cdar alongside-review--shown))
      (user-error "Alongside: no change is open here; run %s"
                  (substitute-command-keys "\\[alongside-review]"))))

(defun alongside-review--decide (method &rest parameters)
  "Decide a review by METHOD with PARAMETERS, and show an error."
  (alongside-bridge-request
   method parameters
   (lambda (problem _)
     (when problem
       (alongside-message
        "%s%s" (plist-get problem :message)
        (if (equal (plist-get (plist-get problem :data) :kind) "emptyMeansUnedited")
            (substitute-command-keys "; use C-u \\[alongside-accept] to accept anyway")
          ""))))))

(defun alongside-accept (&optional even-if-empty)
  "Accept the open change, as it is in its buffer.
With prefix argument EVEN-IF-EMPTY, accept it even if you emptied
it, which agents treat as \"not edited\"."
  (interactive "P")
  (let* ((preview (alongside-preview-here))
         (view (unless preview (alongside-review--here)))
         (id (or preview (alongside-view-id view)))
         (conflicts (alongside-review--conflicts id)))
    (when (or (zerop conflicts)
              (y-or-n-p (format "The file changed in %d of the same places.  \
Accept exactly what is in the buffer? " conflicts)))
      (apply #'alongside-review--decide "review/accept" :review id
             :evenIfEmpty (and even-if-empty t)
             (when view
               (list :content (alongside-review--draft view)))))))

(defun alongside-review-save ()
  "Accept the change if this is the buffer of its draft."
  (interactive)
  (if (eq (current-buffer) (alongside-view-buffer (alongside-review--here)))
      (call-interactively #'alongside-accept)
    (user-error "Alongside: this is the file; the draft is in the other window")))

(defun alongside-reject (&optional reason)
  "Reject the open change.
With a prefix argument, read a REASON, which the agent receives if
it can."
  (interactive (list (when current-prefix-arg
                       (read-string "Reason for the agent: "))))
  (apply #'alongside-review--decide "review/reject"
         :review (or (alongside-preview-here)
                     (alongside-view-id (alongside-review--here)))
         (when reason
           (list :reason reason))))

(defun alongside-review--decide-hunk (decide)
  "Call DECIDE in Ediff's control buffer for a hunk, and go to the next.
It is the hunk at point in the draft, and the current one in the
control buffer."
  (let* ((view (alongside-review--here))
         (control (alongside-view-control view))
         (origin (selected-window))
         (position (and (eq (current-buffer) (alongside-view-buffer view))
                        (point)))
         (window (get-buffer-window control t)))
    (unless (buffer-live-p control)
      (user-error "Alongside: this review is closed"))
    (when window
      (select-window window))
    (with-current-buffer control
      (when (zerop ediff-number-of-differences)
        (user-error "Alongside: the file and the draft have no differing lines"))
      (when (or position (< ediff-current-difference 0))
        (ediff-jump-to-difference
         (min (max 1 (if position (ediff-diff-at-point 'B position) 1))
              ediff-number-of-differences)))
      (funcall decide)
      (when (< ediff-current-difference (1- ediff-number-of-differences))
        (ediff-next-difference)))
    (when (window-live-p origin)
      (select-window origin))))

(defun alongside-accept-hunk ()
  "Accept this hunk, even if it was rejected, and go to the next."
  (interactive)
  (alongside-review--decide-hunk
   (lambda ()
     (when (assoc ediff-current-difference ediff-killed-diffs-alist)
       (ediff-restore-diff nil ?b)))))

(defun alongside-reject-hunk ()
  "Reject this hunk (use the file's text) and go to the next."
  (interactive)
  (alongside-review--decide-hunk (lambda () (ediff-copy-A-to-B nil))))

;;;; Notifications

(defun alongside-review-refresh ()
  "Fetch all pending reviews.
After a restart, and when notifications were missed."
  (alongside-bridge-request
   "review/list" nil
   (lambda (problem list)
     (unless problem
       (setq alongside-review--pending
             (mapcar (lambda (review) (cons (plist-get review :id) review)) list))
       (pcase-dolist (`(,id . ,view) alongside-review--shown)
         (if (assq id alongside-review--pending)
             (alongside-review--reload view)
           (run-at-time 0 nil #'alongside-review--hide view)))
       (alongside-preview-refresh)
       (alongside-bridge--changed)))))

(defun alongside-review--store (review)
  "Store REVIEW, a new one or a new state of one."
  (let* ((id (plist-get review :id))
         (known (assq id alongside-review--pending)))
    (if known
        (setcdr known review)
      (setq alongside-review--pending
            (append alongside-review--pending (list (cons id review)))))
    (alongside-bridge--changed)))

(defun alongside-review--revert-soon (path)
  "Revert the buffer of PATH once the agent has written it.
Leave it alone if it has unsaved text."
  (when-let ((buffer (and alongside-review-revert (find-buffer-visiting path))))
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
  "Handle the end of a review; PARAMETERS have its outcome."
  (let* ((id (plist-get parameters :review))
         (path (plist-get parameters :path))
         (outcome (plist-get parameters :outcome))
         (view (alist-get id alongside-review--shown)))
    (setq alongside-review--pending
          (assq-delete-all id alongside-review--pending))
    (when view
      ;; Not from within a process filter.
      (run-at-time 0 nil #'alongside-review--hide view))
    (when (equal outcome "accepted")
      (alongside-review--revert-soon path))
    (alongside-message "%s: %s" (alongside-review-name path)
                   (pcase outcome
                     ("closedByAgent" "closed by the agent")
                     ("orphaned" "dropped because the agent disconnected")
                     ("shutDown" "rejected because the companion was shutting down")
                     (_ outcome)))
    (alongside-preview-closed id)
    (alongside-bridge--changed)))

(defun alongside-review-listen ()
  "Follow notifications about reviews."
  (alongside-bridge-on
   "review/opened"
   (lambda (review)
     (alongside-review--store review)
     (alongside-preview-present review)))
  (alongside-bridge-on
   "review/changed"
   (lambda (review)
     (alongside-review--store review)
     (alongside-preview-update (plist-get review :id))
     (when-let ((view (alist-get (plist-get review :id) alongside-review--shown)))
       (alongside-review--reload view))))
  (alongside-bridge-on
   "review/edited"
   (lambda (parameters)
     (let* ((id (plist-get parameters :review))
            (view (alist-get id alongside-review--shown)))
       (alongside-review--count-conflicts id (plist-get parameters :hunks))
       (alongside-preview-update id)
       (when view
         (alongside-review--show-header view)
         (unless (eql (plist-get parameters :version)
                      (alongside-view-version view))
           (alongside-review--reload view))))))
  (alongside-bridge-on
   "review/rebased"
   (lambda (parameters)
     (when (> (plist-get parameters :conflicts) 0)
       (alongside-message "the file changed in the same place as a pending change; \
check the draft"))))
  (alongside-bridge-on "review/closed" #'alongside-review--closed)
  (alongside-bridge-on "resync" (lambda (_) (alongside-review-refresh))))

(defun alongside-review-forget ()
  "Close every view and forget the pending reviews."
  (setq alongside-review--pending nil)
  (alongside-preview-close)
  (pcase-dolist (`(,_ . ,view) alongside-review--shown)
    (alongside-review--hide view)))

(provide 'alongside-review)
;;; alongside-review.el ends here
