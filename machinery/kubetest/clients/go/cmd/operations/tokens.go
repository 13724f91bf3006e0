package main

import (
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokens of a ServiceAccount say who asks, and roles what it may.
func tokens(w *world) {
	accounts := w.client.CoreV1().ServiceAccounts("default")
	account := ok(accounts.Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}))
	hour := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	issued := ok(accounts.CreateToken(w.ctx, "robot", request, metav1.CreateOptions{}))
	if left := time.Until(issued.Status.ExpirationTimestamp.Time); left < 50*time.Minute || left > 70*time.Minute {
		fail("the token is good for %v", left)
	}
	few := int64(1)
	short := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &few}}
	_, err := accounts.CreateToken(w.ctx, "robot", short, metav1.CreateOptions{})
	refused("a token for a second", err, errors.IsInvalid)

	robot := w.as(issued.Status.Token)
	who := ok(robot.AuthenticationV1().SelfSubjectReviews().Create(w.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	equal("the user", who.Status.UserInfo.Username, "system:serviceaccount:default:robot")
	equal("its uid", who.Status.UserInfo.UID, string(account.UID))
	if !slices.Contains(who.Status.UserInfo.Groups, "system:serviceaccounts:default") {
		fail("the groups: %v", who.Status.UserInfo.Groups)
	}
	_, err = robot.CoreV1().ConfigMaps("default").List(w.ctx, metav1.ListOptions{})
	refused("without a role", err, errors.IsForbidden)
	ok(w.client.RbacV1().Roles("default").Create(w.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{}))
	ok(w.client.RbacV1().RoleBindings("default").Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: "default"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
	}, metav1.CreateOptions{}))
	w.until("the role counts", func() bool {
		_, err := robot.CoreV1().ConfigMaps("default").List(w.ctx, metav1.ListOptions{})
		return err == nil
	})
	_, err = robot.CoreV1().Secrets("default").List(w.ctx, metav1.ListOptions{})
	refused("other kinds", err, errors.IsForbidden)
	may := func(verb string) bool {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Resource: "configmaps"},
		}}
		return ok(robot.AuthorizationV1().SelfSubjectAccessReviews().Create(w.ctx, review, metav1.CreateOptions{})).Status.Allowed
	}
	equal("may watch", may("watch"), true)
	equal("may delete", may("delete"), false)
	rules := ok(robot.AuthorizationV1().SelfSubjectRulesReviews().Create(w.ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
	}, metav1.CreateOptions{}))
	if !slices.ContainsFunc(rules.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
		return slices.Contains(rule.Resources, "configmaps") && slices.Contains(rule.Verbs, "watch")
	}) {
		fail("the rules: %v", rules.Status.ResourceRules)
	}

	// A server that was given the token asks whose it is.
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issued.Status.Token}}
	reviewed := ok(w.client.AuthenticationV1().TokenReviews().Create(w.ctx, review, metav1.CreateOptions{}))
	equal("the token is good", reviewed.Status.Authenticated, true)
	equal("whose it is", reviewed.Status.User.Username, who.Status.UserInfo.Username)
	must(accounts.Delete(w.ctx, "robot", metav1.DeleteOptions{}))
	w.until("the token of an account that is gone is refused", func() bool {
		_, err := robot.CoreV1().ConfigMaps("default").List(w.ctx, metav1.ListOptions{})
		return errors.IsUnauthorized(err)
	})
	_, err = w.as("nonsense").CoreV1().ConfigMaps("default").List(w.ctx, metav1.ListOptions{})
	refused("nonsense", err, errors.IsUnauthorized)

	// An administrator may act as another.
	acting := rest.CopyConfig(w.config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"team"}}
	alice := kubernetes.NewForConfigOrDie(acting)
	who = ok(alice.AuthenticationV1().SelfSubjectReviews().Create(w.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	equal("the other", who.Status.UserInfo.Username, "alice")
}

// as gives a client that shows a token.
func (w *world) as(token string) *kubernetes.Clientset {
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = token
	config.ContentType = protobufType
	config.AcceptContentTypes = protobufType + ",application/json"
	return kubernetes.NewForConfigOrDie(config)
}
