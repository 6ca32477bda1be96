package job_test

import (
	"errors"
	"fmt"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
)

// A job lists twenty reasons with their first items and counts the rest together. Other values of the job are
// unchanged.
func TestFailures(t *testing.T) {
	var j job.Job
	for n := range 100 {
		before := len(j.Failures)
		next := j.Fail(fmt.Sprint("r", n), fault.New(fault.InvalidState, "reason %d", n%25))
		if len(j.Failures) != before {
			t.Fatal("the job before has changed")
		}
		j = next
	}
	j = j.Fail("x", errors.New("secret"))
	first, rest := j.Failures[0], j.Failures[20]
	if len(j.Failures) != 21 || j.Failed != 101 || first.Count != 4 || first.Text != "reason 0" ||
		fmt.Sprint(first.Refs) != "[r0 r25 r50 r75]" {
		t.Errorf("%d of %d: %+v", len(j.Failures), j.Failed, first)
	}
	if rest.Reason != job.OtherReasons || rest.Text != "" || rest.Count != 21 ||
		fmt.Sprint(rest.Refs) != "[r20 r21 r22 r23 r24]" {
		t.Errorf("the rest: %+v", rest)
	}
	old := job.Job{}.Fail("a", errors.New("no"))
	one, other := old.Fail("b", errors.New("no")), old.Fail("c", errors.New("no"))
	if fmt.Sprint(one.Failures[0].Refs, other.Failures[0].Refs, old.Failures[0].Count) != "[a b] [a c] 1" {
		t.Errorf("%+v, %+v, %+v", one, other, old)
	}
}
