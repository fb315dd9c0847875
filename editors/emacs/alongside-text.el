;;; alongside-text.el --- Text of files and buffers  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The protocol carries the exact text of a file, with its byte order
;; mark, line endings and perhaps a missing final newline.  Emacs keeps the
;; first two in a buffer's coding system.  This file converts between the
;; two, so that untouched text survives byte for byte.

;;; Code:

(defconst alongside-text--mark "\ufeff"
  "The byte order mark.")

(defconst alongside-text--not-unicode "[^\0-\ud7ff\ue000-\U0010ffff]"
  "Matches what cannot be in a UTF-8 file: surrogates and raw bytes.")

(defun alongside-text-split (text)
  "Return (STRING . CODING): TEXT as it is in a buffer.
CODING stands for carriage returns only if every line ends with
one; otherwise they stay visible."
  (let* ((marked (string-prefix-p alongside-text--mark text))
         (string (if marked (substring text 1) text))
         (dos (and (string-search "\r\n" string)
                   (not (string-prefix-p "\n" string))
                   (not (string-match-p "[^\r]\n" string)))))
    (cons (if dos
              ;; Much faster than replacing in a string.
              (decode-coding-string (encode-coding-string string 'utf-8-unix t)
                                    'utf-8-dos t)
            string)
          (cond ((and marked dos) 'utf-8-with-signature-dos)
                (marked 'utf-8-with-signature-unix)
                (dos 'utf-8-dos)
                (t 'utf-8-unix)))))

(defun alongside-text--plain-p (coding)
  "Return non-nil if a text saved with CODING is as it is in the buffer."
  (or (null coding)
      (and (memq (coding-system-base coding) '(utf-8 prefer-utf-8 undecided))
           (let ((ends (coding-system-eol-type coding)))
             (or (eql ends 0)
                 ;; Undecided: there is no line ending yet.
                 (and (vectorp ends) (not (eq system-type 'windows-nt))))))))

(defun alongside-text-join (string coding)
  "Return the text of a file with STRING saved with CODING.
Return nil if that would not be valid UTF-8."
  (let ((text (if (alongside-text--plain-p coding)
                  string
                (decode-coding-string
                 (encode-coding-string string coding t)
                 'utf-8-unix t))))
    (unless (string-match-p alongside-text--not-unicode text)
      text)))

(defun alongside-text-of (buffer)
  "Return the text that saving BUFFER would write.
Return nil if that would not be valid UTF-8."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (alongside-text-join (buffer-substring-no-properties
                            (point-min) (point-max))
                           buffer-file-coding-system))))

(defun alongside-text-put (buffer text)
  "Replace the contents of BUFFER with TEXT, keeping point where possible."
  (pcase-let ((`(,string . ,coding) (alongside-text-split text)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (if (zerop (buffer-size))
            (insert string)
          (let ((source (generate-new-buffer " *alongside text*" t)))
            (unwind-protect
                (progn
                  (with-current-buffer source (insert string))
                  (save-restriction
                    (widen)
                    (replace-buffer-contents source 1)))
              (kill-buffer source)))))
      (setq buffer-file-coding-system coding)
      (set-buffer-modified-p nil))))

(defun alongside-text-units (string)
  "Return how many UTF-16 code units STRING has."
  (let ((units (length string))
        (start 0))
    (while (setq start (string-match-p "[\U00010000-\U0010ffff]" string start))
      (setq units (1+ units)
            start (1+ start)))
    units))

(defun alongside-text-truncate (string bytes)
  "Return at most BYTES bytes of STRING in UTF-8, cut between characters.
Return STRING itself if it is not longer."
  (if (<= (string-bytes string) bytes)
      string
    (let ((low 0)
          (high (min (length string) bytes)))
      ;; The most characters that fit are between LOW and HIGH.
      (while (< low high)
        (let ((middle (/ (+ low high 1) 2)))
          (if (<= (string-bytes (substring string 0 middle)) bytes)
              (setq low middle)
            (setq high (1- middle)))))
      (substring string 0 low))))

(provide 'alongside-text)
;;; alongside-text.el ends here
