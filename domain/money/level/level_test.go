package level_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
)

// limits returns limits of 10 a day and 20 a month after an edit.
func limits(edit func(*level.Limits)) level.Limits {
	ten, twenty := amount.Must("10"), amount.Must("20")
	l := level.Limits{SendTryDaily: ten, SendCryptoDaily: ten, SendTryMonthly: twenty, SendCryptoMonthly: twenty,
		ReceiveTryDaily: ten, ReceiveCryptoDaily: ten, ReceiveTryMonthly: &twenty, ReceiveCryptoMonthly: &twenty}
	edit(&l)
	return l
}

// A limit is not negative, and a month permits at least its day. Every invalid field is named.
func TestCheck(t *testing.T) {
	minus, nine := amount.Must("-0.01"), amount.Must("9.99")
	for fields, edit := range map[string]func(*level.Limits){
		"":                          func(*level.Limits) {},
		" ":                         func(l *level.Limits) { l.ReceiveTryMonthly, l.ReceiveCryptoMonthly = nil, nil },
		"  ":                        func(l *level.Limits) { l.SendTryMonthly = l.SendTryDaily },
		"   ":                       func(l *level.Limits) { *l = level.Limits{} },
		"sendLimitTRYDaily":         func(l *level.Limits) { l.SendTryDaily = minus },
		"sendLimitCryptoDaily":      func(l *level.Limits) { l.SendCryptoDaily = minus },
		"receiveLimitTRYDaily":      func(l *level.Limits) { l.ReceiveTryDaily = minus },
		"receiveLimitCryptoDaily":   func(l *level.Limits) { l.ReceiveCryptoDaily = minus },
		"sendLimitTRYMonthly":       func(l *level.Limits) { l.SendTryMonthly = nine },
		"sendLimitCryptoMonthly":    func(l *level.Limits) { l.SendCryptoMonthly = nine },
		"receiveLimitTRYMonthly":    func(l *level.Limits) { l.ReceiveTryMonthly = &nine },
		"receiveLimitCryptoMonthly": func(l *level.Limits) { l.ReceiveCryptoMonthly = &nine },
		"sendLimitTRYDaily sendLimitTRYMonthly": func(l *level.Limits) {
			l.SendTryDaily, l.SendTryMonthly = minus, minus
		},
	} {
		storetest.WantsFields(t, limits(edit).Check(), strings.TrimSpace(fields))
	}
	err := limits(func(l *level.Limits) { l.SendTryMonthly = nine }).Check()
	if f := err.(*fault.Error); f.Fields[0].Message != "must be at least sendLimitTRYDaily" {
		t.Errorf("%+v", f.Fields)
	}
}
