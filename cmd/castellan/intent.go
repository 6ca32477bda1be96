package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/proof/evidence"
)

type intentCmd struct {
	Verify intentVerifyCmd `cmd:"" help:"Verify the evidence of an approval, offline."`
}

type intentVerifyCmd struct {
	File       string   `arg:"" help:"File with the evidence as JSON; - for standard input."`
	ServiceKey []string `help:"Accept only this key of the service; repeatable." placeholder:"THUMBPRINT"`
}

func (intentVerifyCmd) Help() string {
	return `Reads the response of GET /admin/challenges/{id}/evidence, or its member data, and
verifies it offline. The document must be canonical and match its digest. Every
signature must be valid for its key and name this challenge, its method and its
decision. A method counts once, and the required number must be approved. The service
must have signed all facts.

  curl -H "x-auth: $TOKEN" https://…/admin/challenges/$ID/evidence > evidence.json
  castellan intent verify evidence.json

The file contains the keys. Compare the thumbprint of a device's key with the device, and
that of the service's key with "castellan keys list". With --service-key the command does
the latter, and refuses evidence of release 0.9.

The last line is "valid" only if a signature by a key of --service-key covers every printed
fact. Without --service-key it is "valid if THUMBPRINT is a key of the service": anyone can
sign with another key. Evidence of release 0.9 has no signature of the service: the facts
without a signature are listed instead. The exit status is 0 unless the evidence
contradicts itself or has a key of another service.`
}

// maxEvidence bounds the file, in bytes.
const maxEvidence = 4 << 20

func (c intentVerifyCmd) Run(e *env) error {
	text, err := e.read(c.File, maxEvidence)
	if err != nil {
		return err
	}
	of, err := evidence.Read(text)
	if err != nil {
		return fmt.Errorf("%s is not evidence: %w", c.File, err)
	}
	v, err := of.Verify()
	if err == nil && c.ServiceKey != nil && !slices.Contains(c.ServiceKey, v.Service) {
		err = fmt.Errorf("service: is not signed by a key of --service-key, but by %q", v.Service)
	}
	if err != nil {
		return fmt.Errorf("the evidence is not valid: %w", err)
	}
	show(e.out, of, v)
	switch {
	case v.Unsigned != nil:
	case c.ServiceKey != nil:
		fmt.Fprintln(e.out, "valid")
	default:
		fmt.Fprintf(e.out, "valid if %s is a key of the service\n", v.Service)
	}
	return nil
}

// show prints the facts of verified evidence.
func show(out io.Writer, of evidence.Evidence, v evidence.Verdict) {
	d := v.Document
	fmt.Fprintf(out, "%s (%s) of %s: %s\n", printable(d.Title), printable(d.Action), printable(d.UserID),
		printable(strings.TrimSpace(strings.ToLower(of.Outcome.State)+" "+of.Outcome.Detail)))
	for _, r := range d.Rows {
		fmt.Fprintf(out, "  %s: %s\n", printable(r.Label), printable(r.Value))
	}
	for i, p := range of.Proofs {
		by := "recorded by the service"
		if s := v.Proofs[i]; s.Thumbprint != "" {
			by = fmt.Sprintf("signed by device %s with key %s, for %s", printable(p.DeviceID), s.Thumbprint,
				printable(s.Endpoint))
		}
		fmt.Fprintf(out, "%s: %s at %s, %s\n", printable(string(p.Method)),
			strings.ToLower(v.Proofs[i].Decision), instant(p.At), by)
	}
	fmt.Fprintf(out, "Policy %d: %d of %s, intent %s\n", of.Policy.ID, of.Policy.Required,
		printable(challenge.Listed(of.Policy.Methods)), printable(of.Policy.Intent))
	if of.Audit != nil {
		fmt.Fprintf(out, "Audit row: %s, hash %s\n", printable(of.Audit.ID), printable(of.Audit.Hash))
	}
	if v.Blind {
		fmt.Fprintln(out, "A device answered the challenge without signing the document.")
	}
	if v.Unsigned != nil {
		fmt.Fprintf(out, "No statement of the service: version %d has none. No signature covers:\n", of.Version)
		for _, fact := range v.Unsigned {
			fmt.Fprintf(out, "  %s\n", printable(fact))
		}
		return
	}
	fmt.Fprintf(out, "All of it: signed by the service %s at %s with key %s, thumbprint %s\n",
		printable(of.Service.Issuer), instant(of.Service.At), printable(of.Service.KeyID), v.Service)
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
