"""The messages of OpenIM's protocol that clients and server exchange, as tables."""

from __future__ import annotations

from nexo.wire.openim.protobuf import BOOL, BYTES, INT, MAP, MESSAGE, TEXT, entries, table

OFFLINE_PUSH = table(
    title=(1, TEXT), desc=(2, TEXT), ex=(3, TEXT), iOSPushSound=(4, TEXT), iOSBadgeCount=(5, BOOL), signalInfo=(6, TEXT)
)
MSG_DATA = table(
    sendID=(1, TEXT),
    recvID=(2, TEXT),
    groupID=(3, TEXT),
    clientMsgID=(4, TEXT),
    serverMsgID=(5, TEXT),
    senderPlatformID=(6, INT),
    senderNickname=(7, TEXT),
    senderFaceURL=(8, TEXT),
    sessionType=(9, INT),
    msgFrom=(10, INT),
    contentType=(11, INT),
    content=(12, BYTES),
    seq=(14, INT),
    sendTime=(15, INT),
    createTime=(16, INT),
    status=(17, INT),
    isRead=(18, BOOL),
    options=(19, MAP, entries(BOOL)),
    offlinePushInfo=(20, MESSAGE, OFFLINE_PUSH),
    atUserIDList=((21, TEXT),),
    attachedInfo=(22, TEXT),
    ex=(23, TEXT),
)
PULLED = table(Msgs=((1, MESSAGE, MSG_DATA),), isEnd=(2, BOOL), endSeq=(3, INT))
BY_CONVERSATION = entries(MESSAGE, PULLED)
# of a push, and of an answer to both ways to pull
MESSAGES = table(msgs=(1, MAP, BY_CONVERSATION), notificationMsgs=(2, MAP, BY_CONVERSATION))
SEND_ANSWER = table(serverMsgID=(1, TEXT), clientMsgID=(2, TEXT), sendTime=(3, INT), modify=(4, MESSAGE, MSG_DATA))

USER_REQUEST = table(userID=(1, TEXT))
MAX_SEQS = table(maxSeqs=(1, MAP, entries(INT)), minSeqs=(2, MAP, entries(INT)))
SEQ_RANGE = table(conversationID=(1, TEXT), begin=(2, INT), end=(3, INT), num=(4, INT))
PULL_RANGES = table(userID=(1, TEXT), seqRanges=((2, MESSAGE, SEQ_RANGE),), order=(3, INT))
CONVERSATION_SEQS = table(conversationID=(2, TEXT), seqs=((3, INT),))
PULL_LISTS = table(userID=(1, TEXT), conversations=((2, MESSAGE, CONVERSATION_SEQS),), order=(3, INT))
NAMED_CONVERSATIONS = table(userID=(1, TEXT), conversationIDs=((2, TEXT),))
READ_AND_MAX = table(maxSeq=(1, INT), hasReadSeq=(2, INT), maxSeqTime=(3, INT))
READ_AND_MAX_SEQS = table(seqs=(1, MAP, entries(MESSAGE, READ_AND_MAX)))
LAST_MESSAGES = table(msgs=(1, MAP, entries(MESSAGE, MSG_DATA)))
SUBSCRIPTION = table(subscribeUserID=((1, TEXT),), unsubscribeUserID=((2, TEXT),))
STATUS = table(userID=(1, TEXT), onlinePlatformIDs=((2, INT),))
STATUSES = table(subscribers=((1, MESSAGE, STATUS),))

# of /jssdk/*
CONVERSATION = table(
    ownerUserID=(1, TEXT),
    conversationID=(2, TEXT),
    recvMsgOpt=(3, INT),
    conversationType=(4, INT),
    userID=(5, TEXT),
    groupID=(6, TEXT),
    isPinned=(7, BOOL),
    attachedInfo=(8, TEXT),
    isPrivateChat=(9, BOOL),
    groupAtType=(10, INT),
    ex=(11, TEXT),
    burnDuration=(12, INT),
    minSeq=(13, INT),
    maxSeq=(14, INT),
    msgDestructTime=(15, INT),
    latestMsgDestructTime=(16, INT),
    isMsgDestruct=(17, BOOL),
)
USER = table(
    userID=(1, TEXT),
    nickname=(2, TEXT),
    faceURL=(3, TEXT),
    ex=(4, TEXT),
    createTime=(5, INT),
    appMangerLevel=(6, INT),
    globalRecvMsgOpt=(7, INT),
)
FRIEND = table(
    ownerUserID=(1, TEXT),
    friendUserID=(2, TEXT),
    remark=(3, TEXT),
    createTime=(4, INT),
    addSource=(5, INT),
    operatorUserID=(6, TEXT),
    ex=(7, TEXT),
    isPinned=(8, BOOL),
)
GROUP = table(
    groupID=(1, TEXT),
    groupName=(2, TEXT),
    notification=(3, TEXT),
    introduction=(4, TEXT),
    faceURL=(5, TEXT),
    ownerUserID=(6, TEXT),
    createTime=(7, INT),
    memberCount=(8, INT),
    ex=(9, TEXT),
    status=(10, INT),
    creatorUserID=(11, TEXT),
    groupType=(12, INT),
    needVerification=(13, INT),
    lookMemberInfo=(14, INT),
    applyMemberFriend=(15, INT),
    notificationUpdateTime=(16, INT),
    notificationUserID=(17, TEXT),
    displayIsRead=(18, BOOL),
)
CONVERSATION_MSG = table(
    conversation=(1, MESSAGE, CONVERSATION),
    lastMsg=(2, MESSAGE, MSG_DATA),
    user=(3, MESSAGE, USER),
    friend=(4, MESSAGE, FRIEND),
    group=(5, MESSAGE, GROUP),
    maxSeq=(6, INT),
    readSeq=(7, INT),
)
ACTIVE_REQUEST = table(ownerUserID=(1, TEXT), count=(2, INT))
OWNED_CONVERSATIONS = table(ownerUserID=(1, TEXT), conversationIDs=((2, TEXT),))
CONVERSATION_MSGS = table(unreadCount=(1, INT), conversations=((2, MESSAGE, CONVERSATION_MSG),))
