package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"castellan/domain/access/evidence"
)

type intentCmd struct {
	Verify intentVerifyCmd `cmd:"" help:"Check the evidence of an approval, offline."`
}

type intentVerifyCmd struct {
	File string `arg:"" help:"Evidence as JSON; - reads standard input."`
}

func (intentVerifyCmd) Help() string {
	return `Reads the response of GET /admin/challenges/{id}/evidence, or its member data, and
checks it with nothing but the file: the document is canonical and has the digest,
every signature is by its key and covers the document, and the required number of
methods was completed. The exit status is 0 only if all of that is true:

  curl -H "x-auth: $TOKEN" https://…/admin/challenges/$ID/evidence > evidence.json
  castellan intent verify evidence.json

The keys in the file are those that the service held at that time. Compare the
thumbprint of a key with the owner's device if the service itself is in doubt.`
}

// maxEvidence bounds the file, in bytes.
const maxEvidence = 4 << 20

func (c intentVerifyCmd) Run(e *env) error {
	text, err := c.read(e)
	if err != nil {
		return err
	}
	var in struct {
		Data *evidence.Evidence `json:"data"`
	}
	var one evidence.Evidence
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("%s is not evidence: %w", c.File, err)
	}
	if in.Data != nil {
		one = *in.Data
	} else if err := json.Unmarshal(text, &one); err != nil {
		return fmt.Errorf("%s is not evidence: %w", c.File, err)
	}
	d, err := one.Verify()
	if err != nil {
		return fmt.Errorf("the evidence is not valid: %w", err)
	}
	fmt.Fprintf(e.out, "%s (%s) of %s: %s\n", printable(d.Title), printable(d.Action), printable(d.UserID),
		strings.ToLower(one.Outcome.State))
	for _, r := range d.Rows {
		fmt.Fprintf(e.out, "  %s: %s\n", printable(r.Label), printable(r.Value))
	}
	for _, p := range one.Proofs {
		by := "no signature"
		if p.JWS != "" {
			by = "signed by device " + printable(p.DeviceID)
		}
		fmt.Fprintf(e.out, "%s: %s\n", printable(p.Method), by)
	}
	if !one.Signed() {
		fmt.Fprintln(e.out, "A device answered the challenge without signing the document.")
	}
	_, err = fmt.Fprintln(e.out, "valid")
	return err
}

func (c intentVerifyCmd) read(e *env) ([]byte, error) {
	in := e.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxEvidence+1))
	if err == nil && len(text) > maxEvidence {
		err = fmt.Errorf("%s has more than %d bytes", c.File, maxEvidence)
	}
	return text, err
}
