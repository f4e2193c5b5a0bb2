;;; draftline.el --- Draftline's suggestions and edits through lsp-mode -*- lexical-binding: t; -*-

;; Package-Requires: ((emacs "28.1") (lsp-mode "10.0.0"))
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Registers the Draftline server beside the language's own server, shows its suggestions by
;; `lsp-inline-completion-mode', and changes a region by an instruction with `draftline-edit'.
;; See README.md beside this file.

;;; Code:

(require 'lsp-mode)
(require 'lsp-inline-completion)

(defgroup draftline nil
  "Code completion that runs on this machine."
  :group 'lsp-mode)

(defcustom draftline-command nil
  "The server's command as a list of words.
If nil: `draftline' on `exec-path', else that of the checkout which this file lies in."
  :type '(choice (const :tag "Find it" nil) (repeat string)))

(defcustom draftline-settings nil
  "Settings of the server as a property list, such as (:maxLines 5 :prefetch :json-false)."
  :type 'plist)

(defcustom draftline-modes '(prog-mode text-mode conf-mode)
  "Major modes, parents included, whose buffers the server is started for."
  :type '(repeat symbol))

(defcustom draftline-delay 0.1
  "Seconds without a key before a suggestion is asked for.
lsp-mode waits for `lsp-idle-delay', half a second, and then for `lsp-inline-completion-idle-delay', two
seconds.  Where Draftline runs both get this value, the first one in that buffer only.  With nil they stay
what they are."
  :type '(choice (const :tag "As lsp-mode has it" nil) number))

(defconst draftline--directory
  (file-name-directory (or load-file-name buffer-file-name default-directory))
  "Where this file lies.")

(defvar draftline--status nil
  "What the server last said about itself: a list of state, message, reason and next step.")

(defun draftline--command ()
  "The command to start; an error that says what to do if there is none."
  (let ((checkout (expand-file-name "../../.venv/bin/draftline" draftline--directory)))
    (cond (draftline-command)
          ((executable-find "draftline") '("draftline" "lsp"))
          ((file-executable-p checkout) (list checkout "lsp"))
          (t (user-error "No `draftline' on the path: install it, or set `draftline-command'")))))

(defun draftline--language (buffer)
  "The language identifier of BUFFER; the mode's name where lsp-mode knows none."
  (with-current-buffer buffer
    (or (lsp-buffer-language--configured-id)
        (string-remove-suffix "-mode" (string-remove-suffix "-ts-mode" (symbol-name major-mode))))))

(defun draftline--workspace ()
  "Draftline's workspace of the current buffer, or nil."
  (seq-find (lambda (workspace)
              (eq 'draftline (lsp--client-server-id (lsp--workspace-client workspace))))
            (lsp-workspaces)))

;;; What the server says

(defun draftline--take-status (_workspace params)
  "Keep the status in PARAMS, and tell of a failure."
  (let ((state (lsp-get params :state)))
    (setq draftline--status
          (list state (lsp-get params :message) (lsp-get params :reason)
                (or (lsp-get params :nextStep) "")))
    (when (equal state "failed")
      (lsp-warn "Draftline: %s %s" (nth 1 draftline--status) (nth 3 draftline--status)))))

(defun draftline-status ()
  "Show what the server last said about itself, also why there was no suggestion."
  (interactive)
  (if draftline--status
      (apply #'message "Draftline: %s. %s %s %s" draftline--status)
    (message "Draftline has not been started in any buffer")))

(defun draftline--accepted (command)
  "Tell the server that the suggestion of COMMAND was taken, without waiting for its answer."
  (when-let* ((workspace (draftline--workspace)))
    (with-lsp-workspace workspace
      (lsp-request-async "workspace/executeCommand"
                         (list :command (lsp-get command :command) :arguments (lsp-get command :arguments))
                         #'ignore :error-handler #'ignore :mode 'detached))))

;;; Edits

(defun draftline-edit (start end instruction)
  "Change the region from START to END, or the line at point, as INSTRUCTION says."
  (interactive
   (append (if (use-region-p)
               (list (region-beginning) (region-end))
             (list (line-beginning-position) (line-end-position)))
           (list (read-string "Change it so: "))))
  (let ((workspace (or (draftline--workspace) (user-error "Draftline does not follow this buffer"))))
    (message "Draftline is writing…")
    (with-lsp-workspace workspace
      (lsp-request-async
       "workspace/executeCommand"
       (list :command "draftline.server.edit"
             :arguments (vector (list :textDocument (lsp--versioned-text-document-identifier)
                                      :range (lsp--region-to-range start end)
                                      :instruction instruction)))
       (lambda (answer)
         (message "Draftline: %s"
                  (if (eq t (lsp-get answer :applied))
                      (lsp-get answer :summary)
                    (or (lsp-get answer :message) (lsp-get answer :reason)))))
       :error-handler (lambda (fault) (message "Draftline: %s" (lsp-get fault :message)))
       :mode 'detached))))

;;; Keys and start

;; The keys that lsp-mode itself gives a suggestion: C-<return>, which a terminal does not send, and C-n and
;; C-p, which would no longer move the cursor while one is shown.
(let ((map lsp-inline-completion-active-map))
  (dolist (key '("TAB" "<tab>"))
    (lsp-inline-completion--define-key map (kbd key) #'lsp-inline-completion-accept 'keep))
  (lsp-inline-completion--define-key map (kbd "M-n") #'lsp-inline-completion-next 'keep)
  (lsp-inline-completion--define-key map (kbd "M-p") #'lsp-inline-completion-prev 'keep)
  (dolist (key '("C-n" "C-p"))
    (define-key map (kbd key) nil t)))

(defun draftline--hurry ()
  "Ask sooner in a buffer that Draftline follows; on `lsp-configure-hook'."
  (when (and draftline-delay (draftline--workspace))
    (setq-local lsp-idle-delay draftline-delay)
    (setq-local lsp-inline-completion-idle-delay draftline-delay)))

(add-hook 'lsp-configure-hook #'draftline--hurry)

(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection #'draftline--command)
  :activation-fn (lambda (_file mode) (provided-mode-derived-p mode draftline-modes))
  :server-id 'draftline
  :add-on? t
  :multi-root t
  :priority -1
  :language-id #'draftline--language
  :initialization-options (lambda () draftline-settings)
  :notification-handlers (lsp-ht ("draftline/status" #'draftline--take-status)
                                 ("draftline/trace" #'ignore))
  :action-handlers (lsp-ht ("draftline.server.accepted" #'draftline--accepted))))

(provide 'draftline)
;;; draftline.el ends here
