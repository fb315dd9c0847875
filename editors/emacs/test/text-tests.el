;;; text-tests.el --- Texts survive byte for byte  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-text)
(require 'ert)

(ert-deftest alongside-text-comes-back-as-it-was ()
  (dolist (text '("" "\n" "a" "a\n" "a\n\n" "a\r\nb\r\n" "a\r\nb" "a\r\nb\n"
                  "\r\n" "a\rb" "\r" "\n\r" "\ufeff" "\ufeffa\r\nb" "\ufeffa\nb\n"
                  "a\ufeffb" "\ufeff\ufeffa" "ü🦀\n" "a\r\r\nb\r\n" "\0\n"))
    (pcase-let ((`(,string . ,coding) (alongside-text-split text)))
      (should (equal text (alongside-text-join string coding))))
    (with-temp-buffer
      (alongside-text-put (current-buffer) text)
      (should (equal text (alongside-text-of (current-buffer))))
      ;; Also over another text.
      (alongside-text-put (current-buffer) "something\r\nelse\r\n")
      (alongside-text-put (current-buffer) text)
      (should (equal text (alongside-text-of (current-buffer)))))))

(ert-deftest alongside-text-of-a-visited-file-is-its-content ()
  (dolist (bytes '("a\r\nb\r\n" "\357\273\277a\r\nb" "\303\274\n" "a\nb" "a\r\nb\n" ""))
    (let ((file (make-temp-file "alongside" nil nil bytes))
          (coding-system-for-write 'no-conversion))
      (unwind-protect
          (progn
            (write-region bytes nil file nil 'silent)
            (let* ((coding-system-for-write nil)
                   (buffer (find-file-noselect file)))
              (should (equal (decode-coding-string bytes 'utf-8-unix)
                             (alongside-text-of buffer)))
              (kill-buffer buffer)))
        (delete-file file)))))

(ert-deftest alongside-text-invalid-utf-8-is-nil ()
  (should-not (alongside-text-join "ü" 'latin-1-unix))
  (should-not (alongside-text-join (string (unibyte-char-to-multibyte #xff)) 'utf-8-unix))
  (should-not (alongside-text-join (string #xd800) 'utf-8-unix))
  (should (equal "u" (alongside-text-join "u" 'latin-1-unix))))

(ert-deftest alongside-text-carriage-returns-are-hidden-if-every-line-has-one ()
  (should (equal '("a\nb" . utf-8-dos) (alongside-text-split "a\r\nb")))
  (should (equal '("a\r\nb\n" . utf-8-unix) (alongside-text-split "a\r\nb\n")))
  (should (equal '("\na\r\n" . utf-8-unix) (alongside-text-split "\na\r\n"))))

(ert-deftest alongside-text-units-are-utf-16 ()
  (should (equal 0 (alongside-text-units "")))
  (should (equal 5 (alongside-text-units "aü🦀x"))))

(ert-deftest alongside-text-truncate-keeps-whole-characters ()
  (should (equal "abc" (alongside-text-truncate "abc" 3)))
  (should (equal "ab" (alongside-text-truncate "abc" 2)))
  (should (equal "aü" (alongside-text-truncate "aüü" 4)))
  (should (equal "" (alongside-text-truncate "🦀" 3)))
  (should (equal "🦀" (alongside-text-truncate "🦀🦀" 7))))

(provide 'text-tests)
;;; text-tests.el ends here
