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
	Verify intentVerifyCmd `cmd:"" help:"Verify the evidence of an approval, offline."`
}

type intentVerifyCmd struct {
	File string `arg:"" help:"File with the evidence as JSON; - for standard input."`
}

func (intentVerifyCmd) Help() string {
	return `Reads the response of GET /admin/challenges/{id}/evidence, or its member data, and
verifies it offline. The document must be canonical and match its digest. Every
signature must be valid for its key and cover the document. The required number of
methods must be completed. The exit status is 0 only if the evidence is valid.

  curl -H "x-auth: $TOKEN" https://…/admin/challenges/$ID/evidence > evidence.json
  castellan intent verify evidence.json

The file contains the keys that the service had at that time. If the service itself is
in doubt, compare the thumbprint of a key with the owner's device.`
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
