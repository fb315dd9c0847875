;;; preview-tests.el --- The lines of a diff  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-preview)
(require 'ert)

(defun alongside-preview-tests--numbered (changed)
  "Return twenty numbered lines with those in the alist CHANGED replaced."
  (mapconcat (lambda (number)
               (concat (or (alist-get number changed) (number-to-string number)) "\n"))
             (number-sequence 1 20) ""))

(defun alongside-preview-tests--hunk (state start &optional removed added)
  "Return a hunk in STATE at START with REMOVED and ADDED lines, by default one."
  (list :state state
        :base (list :start start :count (or removed 1))
        :draft (list :start start :count (or added 1))))

(defun alongside-preview-tests--diff (&rest review)
  "Return the differences of REVIEW, a plist."
  (substring-no-properties (string-join (alongside-preview--lines review) ";")))

(ert-deftest alongside-preview-has-context-and-leaves-out-rejected-hunks ()
  (should (equal "@@ line 2 @@; 1;-2;+two; 3;-4;+four; 5; 6; 7"
                 (alongside-preview-tests--diff
                  :base (alongside-preview-tests--numbered nil)
                  :draft (alongside-preview-tests--numbered '((2 . "two") (4 . "four")))
                  :hunks (list (alongside-preview-tests--hunk "accepted" 2)
                               (alongside-preview-tests--hunk "edited" 4)
                               (alongside-preview-tests--hunk "rejected" 15)))))
  (should (equal "@@ line 1 @@;-1;+one; 2; 3; 4;@@ line 20 @@; 17; 18; 19;-20;+twenty"
                 (alongside-preview-tests--diff
                  :base (alongside-preview-tests--numbered nil)
                  :draft (alongside-preview-tests--numbered '((1 . "one") (20 . "twenty")))
                  :hunks (list (alongside-preview-tests--hunk "accepted" 1)
                               (alongside-preview-tests--hunk "accepted" 20))))))

(ert-deftest alongside-preview-shows-new-files-and-removed-lines ()
  (should (equal "@@ line 1 @@;+a;+b"
                 (alongside-preview-tests--diff
                  :draft "a\r\nb\r\n"
                  :hunks (list (alongside-preview-tests--hunk "accepted" 1 0 2)))))
  (should (equal "A note.;@@ line 2 @@; a;-b"
                 (alongside-preview-tests--diff
                  :base "a\nb\n" :draft "a\n" :notes '("A note.")
                  :hunks (list (alongside-preview-tests--hunk "accepted" 2 1 0))))))

(provide 'preview-tests)
;;; preview-tests.el ends here
