import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** FlinkCEP's pattern API in one task: followedBy for the next event, followedByAny for all.
 *
 * What a job takes to start, some two seconds, is not measured. */
final class FlinkDriver {
    /** All operators run in this process, so they can count here. */
    private static final AtomicLong FOUND = new AtomicLong();
    private static final AtomicBoolean STARTED = new AtomicBoolean();

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(FlinkDriver::count, "next", "all", "key");
    }

    private static final class Kind extends SimpleCondition<Protocol.Event> {
        private final String kind;

        Kind(String kind) {
            this.kind = kind;
        }

        @Override
        public boolean filter(Protocol.Event event) {
            return event.kind.equals(kind);
        }
    }

    private static final class Counting extends PatternProcessFunction<Protocol.Event, Long> {
        @Override
        public void processMatch(Map<String, List<Protocol.Event>> match, Context context,
                Collector<Long> out) {
            FOUND.incrementAndGet();
        }
    }

    static long count(Protocol.Question question, List<Protocol.Event> events) throws Exception {
        FOUND.set(0);
        STARTED.set(false);
        var environment = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        environment.setParallelism(1);
        environment.getConfig().enableObjectReuse();
        Collection<Protocol.Event> data = events;
        DataStream<Protocol.Event> stream = environment
            .fromData(data, TypeInformation.of(Protocol.Event.class))
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Protocol.Event>forMonotonousTimestamps()
                    .withTimestampAssigner((event, before) -> {
                        if (!STARTED.getAndSet(true)) {
                            Protocol.begin();
                        }
                        return event.time;
                    }));
        if (question.name().equals("key")) {
            stream = stream.keyBy(event -> event.key);
        }
        boolean next = question.name().equals("next");
        Pattern<Protocol.Event, Protocol.Event> pattern = null;
        for (String kind : question.kinds()) {
            pattern = pattern == null ? Pattern.<Protocol.Event>begin(kind)
                : next ? pattern.followedBy(kind) : pattern.followedByAny(kind);
            pattern = pattern.where(new Kind(kind));
        }
        // Flink's windows exclude an event that is exactly so much later.
        pattern = pattern.within(Duration.ofMillis(question.window() + 1));
        CEP.pattern(stream, pattern).inEventTime().process(new Counting())
            .sinkTo(new DiscardingSink<>());
        environment.execute();
        return FOUND.get();
    }

    private FlinkDriver() {}
}
