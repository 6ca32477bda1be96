package job

import (
	"slices"

	"castellan/domain/kit/fault"
)

// Failure counts the items of a job that failed for one reason.
type Failure struct {
	Reason string   `json:"reason"` // a code of package fault, or OtherReasons
	Text   string   `json:"text"`   // the error, in words that a client may see
	Count  int64    `json:"count"`
	Refs   []string `json:"refs"` // the first items
}

// A job lists at most MaxReasons reasons and counts the rest as OtherReasons. For each reason it keeps the refs of the
// first few items.
const (
	MaxReasons   = 20
	OtherReasons = "OTHER"
	firstRefs    = 5
)

// Fail returns j with one more permanently failed item, counted under its reason.
func (j Job) Fail(ref string, err error) Job {
	j.Failed++
	code := fault.CodeOf(err)
	j.Failures = counted(j.Failures, string(code), public(err), ref)
	return j
}

// counted adds one failure and leaves all unchanged: another value of the job shares it.
func counted(all []Failure, reason, text, ref string) []Failure {
	all = slices.Clone(all)
	of := func(reason, text string) int {
		return slices.IndexFunc(all, func(f Failure) bool { return f.Reason == reason && f.Text == text })
	}
	at := of(reason, text)
	if at < 0 && len(all) >= MaxReasons {
		reason, text = OtherReasons, ""
		at = of(reason, text)
	}
	if at < 0 {
		return append(all, Failure{reason, text, 1, []string{ref}})
	}
	f := &all[at]
	if f.Count++; len(f.Refs) < firstRefs {
		f.Refs = append(slices.Clone(f.Refs), ref)
	}
	return all
}
