;;; context-tests.el --- What counts as selected  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-context)
(require 'cl-lib)
(require 'ert)
(require 'rect)

(defvar evil-state)

(defmacro alongside-tests--in-text (&rest body)
  "Run BODY in a buffer with some lines."
  `(with-temp-buffer
     (transient-mark-mode 1)
     (insert (propertize "one\ntwo\nthree\n" 'face 'bold))
     (goto-char (point-min))
     ,@body))

(ert-deftest alongside-context-the-active-region-is-selected-and-nothing-else ()
  (alongside-tests--in-text
   (should-not (alongside-context--selection))
   (push-mark (point) t t)
   (should-not (alongside-context--selection))
   (goto-char 6)
   (should (equal-including-properties "one\nt" (alongside-context--selection)))
   (deactivate-mark)
   (should-not (alongside-context--selection))))

(ert-deftest alongside-context-a-rectangle-is-selected-as-one ()
  (alongside-tests--in-text
   (goto-char 2)
   (push-mark (point) t t)
   (rectangle-mark-mode 1)
   (goto-char 12)
   (should (equal-including-properties "ne\nwo\nhr" (alongside-context--selection)))))

(ert-deftest alongside-context-evil-selects-what-the-cursor-is-on ()
  (alongside-tests--in-text
   (let ((evil-state 'visual) (range '(1 4 inclusive :expanded t)))
     (cl-letf (((symbol-function 'evil-visual-range) (lambda () range)))
       (should (equal "one" (alongside-context--selection)))
       (setq range '(2 12 block :expanded t))
       (should (equal "ne\nwo\nhr" (alongside-context--selection)))))))

(ert-deftest alongside-context-a-huge-selection-is-cut ()
  (with-temp-buffer
    (transient-mark-mode 1)
    (insert (make-string 100000 ?a))
    (push-mark (point-min) t t)
    (should (equal alongside-context--most-selected
                   (length (alongside-context--selection))))))

(ert-deftest alongside-context-only-files-of-this-machine-have-a-path ()
  (with-temp-buffer
    (should-not (alongside-context--path-of (current-buffer)))
    (rename-buffer "a name")
    (setq buffer-file-name "/ssh:nowhere:/a.txt")
    (should-not (alongside-context--path-of (current-buffer)))
    (setq buffer-file-name "/:/a/b c$.txt")
    (should (equal "/a/b c$.txt" (alongside-context--path-of (current-buffer))))
    (setq buffer-file-name nil)))

(provide 'context-tests)
;;; context-tests.el ends here
