package people_test

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/picture/picturetest"
)

// D-KYC-11: a case is the account as it is, with what was found out and what was decided last.
func TestCase(t *testing.T) {
	const path = "GET /admin/kyc-case?userId="
	kycBoth(t, func(s *kycSite) {
		shown := func(state, decision string) string {
			return `{"userId":"u1","fullName":"","birthDate":null,"status":"active","levelId":0,"kycConfirm":"` + state +
				`","addressConfirmed":"waitingApproval","amlStatus":"notRisky","createdAt":"` +
				s.user("u1").CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z") +
				`","types":{"front":1,"back":2,"selfie":3,"address":4},"checks":{"identityNumber":true,"register":null,` +
				`"name":true,"birthDate":null,"sameNumber":2},"decision":` + decision + `}`
		}
		s.Wants(path+"u1", "", 200, shown("waitingApproval", "null"))
		front := s.add("u1", 1, picturetest.PNG(8, 8))
		s.Wants(decide, fmt.Sprintf(`{"userId":"u1","kycConfirm":"rejected","rejectedResult":"Blurred",`+
			`"userDocumentId":["%s"],"documentId":"%[1]s"}`, front), 200, fmt.Sprintf(`{"data":{"userId":"u1",`+
			`"kycConfirm":"rejected","rejectedResult":"Blurred","userDocumentId":["%s"],"documentId":"%[1]s"}}`, front))
		_, answer := s.Call(path+"u1", "")
		for _, part := range []string{`"kycConfirm":"rejected","addressConfirmed"`, `"decision":{"kycConfirm":"rejected",` +
			`"rejectedResult":"Blurred","documentId":"` + front + `","decidedBy":"admin","decidedAt":"20`} {
			if !strings.Contains(answer, part) {
				t.Errorf("%s is not in %s", part, answer)
			}
		}
		s.Wants(path+"nobody", "", 404, "RECORD_NOT_FOUND")
	})
}
